/** Tells the server that somebody types or clicks here: an open tab alone is nobody at work. */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { IDocumentManager } from '@jupyterlab/docmanager';

import type { Session } from './session';

const EVERY_MS = 30000;

/** Notices keys and clicks of a person, and says so at most twice a minute, with the document that is at hand. */
export class Editing {
  constructor(
    private shell: JupyterFrontEnd.IShell,
    private manager: IDocumentManager,
    private session: Session
  ) {
    for (const kind of ['keydown', 'pointerdown']) {
      document.addEventListener(kind, event => this.note(event), { capture: true, passive: true });
    }
  }

  private note(event: Event): void {
    // A script's own events are nobody's.
    if (!event.isTrusted || !this.session.governed || Date.now() - this.told < EVERY_MS) {
      return;
    }
    this.told = Date.now();
    const widget = this.shell.currentWidget;
    const path = widget ? (this.manager.contextForWidget(widget)?.localPath ?? null) : null;
    this.session.api.edited(path).catch(() => {
      this.told = 0;
    });
  }

  private told = 0;
}
