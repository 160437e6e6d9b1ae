/** What the tab says when its server no longer answers: where the receipt is, and where to start again. */
import { ConnectionLost, IConnectionLost, JupyterFrontEnd } from '@jupyterlab/application';
import { Dialog } from '@jupyterlab/apputils';
import { URLExt } from '@jupyterlab/coreutils';

import { hasEnded, isOver } from './line';
import type { Session } from './session';
import type { Texts } from './texts';

/**
 * The hub's page of this server: its receipt and the way to start it again; a running server is opened from there.
 * Null on a server without a hub.
 */
export function serverPage(urls: JupyterFrontEnd.IPaths['urls']): string | null {
  if (!urls.hubPrefix || !urls.hubUser) {
    return null;
  }
  const names = [urls.hubUser, urls.hubServerName ?? ''].filter(Boolean).map(encodeURIComponent);
  return (urls.hubHost ?? '') + URLExt.join(urls.hubPrefix, 'user', ...names) + '/';
}

/** One dialog at a time, which closes when the server answers again; without a hub it is Lab's own. */
export function connectionLost(
  session: Session,
  texts: Texts,
  page: string | null,
  open: (url: string) => void = url => window.location.assign(url)
): IConnectionLost {
  if (page === null) {
    return ConnectionLost;
  }
  let shown: Promise<void> | null = null;
  return async () => {
    shown ??= tell(session, texts, page, open).finally(() => {
      shown = null;
    });
    await shown;
  };
}

async function tell(session: Session, texts: Texts, page: string, open: (url: string) => void): Promise<void> {
  const { __ } = texts;
  const over = isOver(session);
  if (over) {
    // Lab's own complaints about what it can't reach any more would stand before this.
    Dialog.flush();
  }
  const dialog = new Dialog({
    title: over ? __('This session has ended') : __('The server does not answer'),
    body: over
      ? __('Its page tells what was saved, what was lost and what it cost, and starts it again.')
      : __('It may have ended or be out of reach. Its page opens it again, or tells what was saved.'),
    buttons: [
      Dialog.cancelButton({ label: __('Stay here') }),
      Dialog.okButton({ label: over ? __('Open the receipt') : __('Open its page') })
    ]
  });
  const answers = () => {
    if (session.offline() === null && !hasEnded(session)) {
      dialog.reject();
    }
  };
  session.changed.connect(answers);
  try {
    if ((await dialog.launch()).button.accept) {
      open(page);
    }
  } finally {
    session.changed.disconnect(answers);
  }
}
