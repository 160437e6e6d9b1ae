/** The item in the status bar: a real button with device, stop time and time left. */
import { Popup, showPopup } from '@jupyterlab/statusbar';
import { Widget } from '@lumino/widgets';

import type { Actions } from './actions';
import { idleLeft } from './idle';
import { lineOf, ruleText } from './line';
import { Popover } from './popover';
import { redrawAfter } from './remaining';
import type { Session } from './session';
import type { Texts } from './texts';

const LEVELS = ['', 'hubgov-mod-soon', 'hubgov-mod-verySoon', 'hubgov-mod-now'];

/** Draws the line, more often the nearer the end is. */
export class StatusItem extends Widget {
  constructor(
    private session: Session,
    private texts: Texts,
    private actions: Actions
  ) {
    super({ node: document.createElement('button') });
    this.addClass('hubgov-StatusItem');
    this.addClass('jp-mod-highlighted');
    (this.node as HTMLButtonElement).type = 'button';
    this.node.setAttribute('aria-haspopup', 'dialog');
    this.node.onclick = () => this.toggle();
    this.spoken.className = 'hubgov-Spoken';
    this.spoken.setAttribute('role', 'status');
    document.body.append(this.spoken);
    session.changed.connect(this.draw, this);
    document.addEventListener('visibilitychange', this.redraw);
    this.draw();
  }

  /** Open the popover, or close it. */
  toggle(): void {
    if (this.popup !== null && !this.popup.isDisposed) {
      this.popup.dispose();
      this.node.focus();
      return;
    }
    if (!this.session.governed) {
      return;
    }
    const body = new Popover(this.session, this.texts, this.actions, () => this.popup?.dispose());
    this.popup = showPopup({ body, anchor: this, align: 'right', hasDynamicSize: true });
    this.popup.disposed.connect(() => this.node.setAttribute('aria-expanded', 'false'));
    this.popup.node.addEventListener('keydown', event => {
      if (event.key === 'Escape') {
        this.node.focus();
      }
    });
    this.node.setAttribute('aria-expanded', 'true');
    body.focus();
  }

  /** Have the line read aloud. */
  speak(): void {
    // Emptied first: the same text again would not be announced.
    this.spoken.textContent = '';
    window.setTimeout(() => {
      this.spoken.textContent = lineOf(this.session, this.texts) || this.texts.__('This server is not governed.');
    }, 50);
  }

  dispose(): void {
    window.clearTimeout(this.timer);
    document.removeEventListener('visibilitychange', this.redraw);
    this.session.changed.disconnect(this.draw, this);
    this.spoken.remove();
    super.dispose();
  }

  private redraw = () => this.draw();

  private draw(): void {
    const workload = this.session.workload;
    const left = this.session.left();
    const line = lineOf(this.session, this.texts);
    if (this.node.textContent !== line) {
      this.node.textContent = line;
    }
    this.node.title = workload?.expires_at ? ruleText(workload, this.texts) : '';
    const level = this.session.level();
    LEVELS.forEach((name, n) => name && this.toggleClass(name, n === level));
    this.toggleClass('hubgov-mod-offline', this.session.offline() !== null);
    this.toggleClass('hubgov-mod-simulated', workload?.simulated === true);
    window.clearTimeout(this.timer);
    // A hidden page draws when it is shown again; until then nobody sees the text.
    if (!document.hidden && workload !== null) {
      const soonest = Math.min(left ?? Infinity, idleLeft(this.session) ?? Infinity);
      const after = redrawAfter(soonest, this.session.offline() !== null);
      this.timer = window.setTimeout(() => this.draw(), after);
    }
  }

  private popup: Popup | null = null;
  private spoken = document.createElement('div');
  private timer = 0;
}
