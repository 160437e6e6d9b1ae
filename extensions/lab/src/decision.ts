/** A decision of the service as a dialog: what, the rule, the numbers compared, and what can be done. */
import { Dialog, showDialog } from '@jupyterlab/apputils';
import { Widget } from '@lumino/widgets';

import type { IBlocker, IDecision } from './api';
import { clockText } from './line';
import { span } from './remaining';
import type { Session } from './session';
import type { Texts } from './texts';

/** Show the decision. */
export async function showDecision(
  title: string,
  decision: IDecision,
  session: Session,
  texts: Texts
): Promise<void> {
  await showDialog({
    title,
    body: decisionBody(decision, session, texts),
    buttons: [Dialog.okButton({ label: texts.__('Close') })]
  });
}

/** The decision as a widget, in the order that every surface keeps. */
export function decisionBody(decision: IDecision, session: Session, texts: Texts): Widget {
  const body = new Widget();
  body.addClass('hubgov-Decision');
  body.node.append(element('p', decision.headline, 'hubgov-Headline'));
  const list = document.createElement('dl');
  list.className = 'hubgov-Rows';
  if (decision.rule) {
    addRow(list, texts.__('Rule'), decision.rule);
  }
  if (decision.blockers.length > 0) {
    const blocker = decision.blockers[0];
    addRow(list, texts.__('Compared'), numbers(blocker, texts));
    if (blocker.frees_at !== null) {
      addRow(list, texts.__('Changes by itself'), clockText(blocker.frees_at, session, texts));
    }
  }
  for (const signal of decision.signals ?? []) {
    addRow(list, signalName(signal.kind, texts), texts.__('%1: %2', levelName(signal.level, texts), signal.text));
  }
  if (list.childElementCount > 0) {
    body.node.append(list);
  }
  if (decision.next_steps.length > 0) {
    body.node.append(element('p', texts.__('What you can do'), 'hubgov-Label'));
    const steps = document.createElement('ul');
    steps.append(...decision.next_steps.map(step => element('li', step)));
    body.node.append(steps);
  }
  return body;
}

/** One row of a list of facts. */
export function addRow(list: HTMLElement, name: string, value: string): void {
  list.append(element('dt', name), element('dd', value));
}

/** An element with text in it; never markup, since the texts come from elsewhere. */
export function element(tag: string, text: string, className = ''): HTMLElement {
  const made = document.createElement(tag);
  made.textContent = text;
  made.className = className;
  return made;
}

/** Where a sign of work or idleness comes from. */
function signalName(kind: string, texts: Texts): string {
  const { __ } = texts;
  const known: Record<string, string> = {
    gpu: __('GPU'),
    cpu: __('CPU'),
    io: __('Disk'),
    kernel: __('Kernels'),
    terminal: __('Terminals'),
    child: __('Processes'),
    human: __('People')
  };
  return known[kind] ?? kind;
}

function levelName(level: string, texts: Texts): string {
  const { __ } = texts;
  const known: Record<string, string> = { busy: __('busy'), idle: __('idle'), unknown: __('unknown') };
  return known[level] ?? level;
}

function numbers(blocker: IBlocker, texts: Texts): string {
  const unit = (value: number) => amount(value, blocker.unit, texts);
  const room = texts.__('needs %1, room for %2', unit(blocker.need), unit(Math.max(0, blocker.have)));
  return blocker.limit === null ? room : texts.__('%1, limit %2', room, unit(blocker.limit));
}

function amount(value: number, unit: string, texts: Texts): string {
  if (unit === 'seconds') {
    return span(value, texts.__);
  }
  return unit === 'gpus' ? texts.__('%1 GPUs', `${value}`) : `${value} ${unit}`;
}
