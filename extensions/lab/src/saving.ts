/** Saves all documents when the server asks for it, and says what became of each. */
import { Notification } from '@jupyterlab/apputils';

import { messageOf } from './api';
import type { Documents } from './documents';
import { fitting } from './remaining';
import type { Session } from './session';
import type { Texts } from './texts';

const TRIES = 12;
const PAUSE_MS = 300;

/** Answers each save once. */
export class Saving {
  constructor(
    private session: Session,
    private documents: Documents,
    private texts: Texts
  ) {
    session.changed.connect(() => void this.check());
  }

  private async check(): Promise<void> {
    const save = this.session.workload?.save_requested ?? null;
    if (save === null || save === this.last) {
      return;
    }
    this.last = save;
    const documents = await this.documents.saveAll();
    const failed = documents.filter(document => !document.saved);
    if (failed.length > 0) {
      const { path, error } = failed[0];
      Notification.error(fitting(this.texts.__('Not saved: %1 (%2)', path, error)), { autoClose: false });
    }
    await this.repeated(() => this.session.api.saved(save, documents), save);
  }

  /** Try until it works or nobody waits for this save any more. The server makes its copies in either case. */
  private async repeated(ask: () => Promise<unknown>, save: string): Promise<void> {
    for (let tries = 0; tries < TRIES; tries += 1) {
      try {
        await ask();
        return;
      } catch (error) {
        console.warn(`hubgov: save ${save}: ${messageOf(error)}`);
      }
      await new Promise(resolve => window.setTimeout(resolve, PAUSE_MS));
    }
  }

  private last: string | null = null;
}
