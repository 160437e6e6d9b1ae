/** Saves all documents when the server asks for it, and says what became of each. */
import { Notification } from '@jupyterlab/apputils';

import { messageOf } from './api';
import type { Documents } from './documents';
import { fitting } from './remaining';
import type { Session } from './session';
import type { Texts } from './texts';

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
    try {
      await this.session.api.saved(save, documents);
    } catch (error) {
      // The server makes its copies without this answer, and reports that no browser took part.
      console.warn(`hubgov: the saved documents were not reported: ${messageOf(error)}`);
    }
  }

  private last: string | null = null;
}
