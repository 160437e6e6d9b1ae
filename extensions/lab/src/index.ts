/** The governed GPU session in JupyterLab: status item, warnings, saving at the end, commands. */
import { IConnectionLost, JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { IDocumentManager, IDocumentWidgetOpener } from '@jupyterlab/docmanager';
import { ServerConnection } from '@jupyterlab/services';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { Token } from '@lumino/coreutils';

import { Actions } from './actions';
import { Api } from './api';
import { connectionLost, serverPage } from './connection';
import { Documents } from './documents';
import { Editing } from './editing';
import { canKeep } from './idle';
import { hasEnded } from './line';
import { Notices } from './notices';
import { Saving } from './saving';
import { Session } from './session';
import { StatusItem } from './status';
import { Texts } from './texts';

const ISession = new Token<Session>('hubgov-lab:ISession', 'The governed session of this server.');

const sessionPlugin: JupyterFrontEndPlugin<Session> = {
  id: 'hubgov-lab:session',
  description: 'The governed session of this server, as this tab knows it.',
  provides: ISession,
  activate: (app: JupyterFrontEnd) => new Session(new Api(app.serviceManager.serverSettings))
};

/** In place of the hub extension's dialog (switched off in package.json), which knows no receipt. */
const connectionPlugin: JupyterFrontEndPlugin<IConnectionLost> = {
  id: 'hubgov-lab:connection-lost',
  description: 'Says where the receipt is when the server is gone.',
  provides: IConnectionLost,
  requires: [ISession, JupyterFrontEnd.IPaths],
  optional: [ITranslator],
  activate: (_, session: Session, paths: JupyterFrontEnd.IPaths, translator: ITranslator | null) =>
    connectionLost(session, new Texts(translator ?? nullTranslator), serverPage(paths.urls))
};

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'hubgov-lab:plugin',
  description: 'How long a governed GPU session lasts, why, and a way to extend it.',
  autoStart: true,
  requires: [ISession, IDocumentManager, IDocumentWidgetOpener],
  optional: [ITranslator, IStatusBar, ICommandPalette, IConnectionLost],
  activate: (
    app: JupyterFrontEnd,
    session: Session,
    manager: IDocumentManager,
    opener: IDocumentWidgetOpener,
    translator: ITranslator | null,
    bar: IStatusBar | null,
    palette: ICommandPalette | null,
    lost: IConnectionLost | null
  ) => {
    const texts = new Texts(translator ?? nullTranslator);
    const documents = new Documents(app.shell, manager, opener, session, texts);
    const actions = new Actions(session, texts);
    new Notices(session, texts, actions);
    new Editing(app.shell, manager, session);
    new Saving(session, documents, texts);
    const item = new StatusItem(session, texts, actions);
    bar?.registerStatusItem('hubgov-lab:session', {
      item,
      align: 'right',
      rank: 1000,
      priority: 10,
      isActive: () => session.governed,
      activeStateChanged: session.governedChanged
    });
    addCommands(app, texts, session, actions, item, palette);
    let told = false;
    session.changed.connect(() => {
      // Of a named server that has ended, the user's default server answers: no connection is lost then.
      if (!told && lost !== null && session.offline() !== null && hasEnded(session)) {
        told = true;
        void lost(app.serviceManager, new ServerConnection.NetworkError(new TypeError('ended')));
      }
    });
    void app.restored.then(() => {
      let begun = false;
      session.changed.connect(() => {
        if (session.governed && session.workload !== null && !begun) {
          begun = true;
          documents.begin();
          if (!session.resumed) {
            void documents.resume(session.workload.resume_documents);
          }
        }
      });
      session.start();
    });
  }
};

function addCommands(
  app: JupyterFrontEnd,
  texts: Texts,
  session: Session,
  actions: Actions,
  item: StatusItem,
  palette: ICommandPalette | null
): void {
  const { __ } = texts;
  const isVisible = () => session.governed;
  const isEnabled = () => actions.enabled;
  const commands: [string, string, () => unknown, () => boolean][] = [
    ['hubgov:extend', __('Extend the GPU session'), () => actions.extend(), isEnabled],
    ['hubgov:keep', __('Keep the idle GPU session'), () => actions.keep(), () => canKeep(session.workload)],
    ['hubgov:stop', __('Stop the GPU session now'), () => actions.stop(), isEnabled],
    ['hubgov:why', __('Why the GPU session stands as it does'), () => actions.why(), isEnabled],
    ['hubgov:read-status', __('Read the GPU session status aloud'), () => item.speak(), isVisible],
    ['hubgov:popover', __('Show the GPU session'), () => item.toggle(), isVisible]
  ];
  for (const [command, label, execute, enabled] of commands) {
    app.commands.addCommand(command, { label, execute, isEnabled: enabled, isVisible });
    palette?.addItem({ command, category: __('GPU session') });
  }
  session.changed.connect(() => app.commands.notifyCommandChanged());
}

export default [sessionPlugin, connectionPlugin, plugin];
