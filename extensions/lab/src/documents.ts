/** The documents that this tab has open: reported to the server, saved on request, opened again on resume. */
import { PathExt } from '@jupyterlab/coreutils';
import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { IDocumentManager, IDocumentWidgetOpener } from '@jupyterlab/docmanager';
import type { DocumentRegistry } from '@jupyterlab/docregistry';

import { Api, ISavedDocument, messageOf } from './api';
import type { Session } from './session';
import type { Texts } from './texts';

const REPORT_AFTER_MS = 500;
/** Both together stay below what the server waits for its browsers (`Limits.lab_wait_seconds`). */
const SAVE_MS = 4000;
const ASIDE_MS = 3000;
const AREAS = ['main', 'left', 'right', 'down'];

/** Knows the contexts of all open documents whose files lie on this server. */
export class Documents {
  constructor(
    private shell: JupyterFrontEnd.IShell,
    private manager: IDocumentManager,
    opener: IDocumentWidgetOpener,
    private session: Session,
    private texts: Texts
  ) {
    this.api = session.api;
    opener.opened.connect((_, widget) => {
      this.follow(widget.context);
      this.reportSoon();
    });
  }

  /** Follow what Lab restored from its last layout. */
  begin(): void {
    this.contexts().forEach(context => this.follow(context));
    this.reportSoon();
  }

  /** Save every document with unsaved changes and say of each what became of it. */
  async saveAll(): Promise<ISavedDocument[]> {
    return (await Promise.all([...this.contexts()].map(context => this.save(context)))).flat();
  }

  /** Open the documents of the session that this one resumes: the first tab only, and only those that exist. */
  async resume(paths: string[]): Promise<void> {
    if (paths.length === 0 || !(await this.api.claimResume())) {
      return;
    }
    for (const path of paths) {
      if (this.manager.findWidget(path, null)) {
        continue;
      }
      try {
        // Asked first: opening a file that is gone would bring up a dialog for each.
        await this.manager.services.contents.get(path, { content: false });
        this.manager.open(path);
      } catch (error) {
        console.warn(`hubgov: ${path} was not opened again: ${messageOf(error)}`);
      }
    }
  }

  /** The path below the server's folder; null for a document that lies elsewhere. */
  private pathOf(context: DocumentRegistry.Context): string | null {
    const contents = this.manager.services.contents;
    const drive = contents.driveName(context.path);
    return drive === '' || drive === 'RTC' ? contents.localPath(context.path) : null;
  }

  private contexts(): Set<DocumentRegistry.Context> {
    const found = new Set<DocumentRegistry.Context>();
    for (const area of AREAS) {
      for (const widget of this.shell.widgets(area)) {
        const context = this.manager.contextForWidget(widget);
        if (context && !context.isDisposed && this.pathOf(context) !== null) {
          found.add(context);
        }
      }
    }
    return found;
  }

  /** What became of a document; where its own file could not be written, of the copy beside it too. */
  private async save(context: DocumentRegistry.Context): Promise<ISavedDocument[]> {
    const path = this.pathOf(context) ?? '';
    if (!context.isReady || !context.model.dirty || context.model.readOnly) {
      return [{ path, saved: true, error: '' }];
    }
    let error = '';
    try {
      // A conflict with the file on disk opens a dialog and waits for somebody to answer it.
      await Promise.race([context.save(), this.tooLate(SAVE_MS)]);
    } catch (reason) {
      error = messageOf(reason);
    }
    // `save` also resolves when its dialog was cancelled; only the model tells whether the text is on disk.
    if (!context.model.dirty) {
      return [{ path, saved: true, error: '' }];
    }
    error = error || this.texts.__('it still has unsaved changes');
    const aside = await this.keepAside(context, path);
    if (aside === null) {
      return [{ path, saved: false, error: error.slice(0, 200) }];
    }
    error = this.texts.__('%1; what was typed is kept in %2', error.slice(0, 80), aside).slice(0, 200);
    return [
      { path, saved: false, error },
      { path: aside, saved: true, error: '' }
    ];
  }

  /** Write the text of a document that can't be saved into a new file beside it; its path, or null. */
  private async keepAside(context: DocumentRegistry.Context, path: string): Promise<string | null> {
    const file = context.contentsModel;
    if (file === null || file.format === 'base64') {
      return null;
    }
    const stem = path.slice(0, path.length - PathExt.extname(path).length);
    const stamp = new Date().toISOString().slice(0, 19).replace(/[-:]/g, '').replace('T', '-');
    const aside = `${stem}-unsaved-${stamp}${PathExt.extname(path)}`;
    const content = file.type === 'notebook' ? context.model.toJSON() : context.model.toString();
    try {
      const options = { type: file.type, format: file.format, content };
      await Promise.race([this.manager.services.contents.save(aside, options), this.tooLate(ASIDE_MS)]);
      return aside;
    } catch (reason) {
      console.warn(`hubgov: ${path} could not be kept aside: ${messageOf(reason)}`);
      return null;
    }
  }

  private tooLate(ms: number): Promise<never> {
    const error = new Error(this.texts.__('not saved within %1 s', `${ms / 1000}`));
    return new Promise((_, reject) => window.setTimeout(() => reject(error), ms));
  }

  private follow(context: DocumentRegistry.Context): void {
    if (this.followed.has(context)) {
      return;
    }
    this.followed.add(context);
    context.pathChanged.connect(() => this.reportSoon());
    context.disposed.connect(() => this.reportSoon());
  }

  private reportSoon(): void {
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.report(), REPORT_AFTER_MS);
  }

  private async report(): Promise<void> {
    if (!this.session.governed) {
      return;
    }
    try {
      await this.api.documents([...this.contexts()].map(context => this.pathOf(context) ?? ''));
    } catch (error) {
      // The next change, or the save itself, names the documents again.
      console.warn(`hubgov: the open documents were not reported: ${messageOf(error)}`);
    }
  }

  private api: Api;
  private followed = new WeakSet<DocumentRegistry.Context>();
  private timer = 0;
}
