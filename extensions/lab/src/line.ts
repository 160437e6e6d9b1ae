/** What the status bar says, as one line and as the rows of the popover. */
import type { IMoney, IWorkload } from './api';
import { idleParts, idleRows } from './idle';
import { clock, span } from './remaining';
import type { Session } from './session';
import type { Texts } from './texts';

const OVER = ['stopping', 'quarantined', 'succeeded', 'failed', 'cancelled', 'expired', 'culled', 'lost'];

/** The device in words: "A100", "2 × A100", "SIMULATED A100", "CPU session". */
export function deviceText(workload: IWorkload, texts: Texts): string {
  if (workload.devices.length === 0 && workload.gpus === 0) {
    return texts.__('CPU session');
  }
  const name = workload.flavor ?? 'GPU';
  const count = workload.gpus === 1 || workload.gpus === 0 ? name : `${workload.gpus} × ${name}`;
  return workload.simulated ? texts.__('SIMULATED %1', count) : count;
}

/** The wall clock of an instant that the service named. */
export function clockText(at: string, session: Session, texts: Texts): string {
  return clock(Date.parse(at), session.now(), texts.locale);
}

/** Whether the session has ended or its end has come, as far as this tab knows. */
export function isOver(session: Session): boolean {
  const workload = session.workload;
  if (workload === null) {
    return false;
  }
  const left = session.left();
  return hasEnded(session) || (left !== null && left <= 0);
}

/** Whether it has ended for good: nothing of it can be extended any more. */
export function hasEnded(session: Session): boolean {
  return session.workload !== null && OVER.includes(session.workload.state);
}

/** The line of the status bar; empty on a server that nobody governs. */
export function lineOf(session: Session, texts: Texts): string {
  const workload = session.workload;
  if (!session.governed) {
    return '';
  }
  if (workload === null) {
    return session.offline() === null ? texts.__('GPU session') : texts.__('GPU session · offline');
  }
  return [deviceText(workload, texts), ...timeParts(session, workload, texts)].join(' · ');
}

function timeParts(session: Session, workload: IWorkload, texts: Texts): string[] {
  const left = session.left();
  const offline = session.offline();
  if (workload.state === 'stopping' && workload.save_requested !== null) {
    return [texts.__('saving'), texts.__('then it stops')];
  }
  if (OVER.includes(workload.state)) {
    return [texts.__('session ended')];
  }
  const idle = offline === null ? idleParts(session, texts) : null;
  if (idle !== null) {
    return idle;
  }
  if (offline !== null) {
    const silent = texts.__('offline %1', span(offline, texts.__));
    return left === null ? [silent] : [`~${span(left, texts.__)}`, silent];
  }
  if (workload.state === 'expiring' || workload.state === 'preempting') {
    const grace = workload.grace_until;
    const what = workload.save_requested === null ? texts.__('time is up') : texts.__('saving');
    return grace === null
      ? [what]
      : [
          what,
          texts.__('stops %1', clockText(grace, session, texts)),
          graceLeft(session, grace, texts)
        ];
  }
  if (left === null || workload.expires_at === null) {
    return [texts.__('no time limit')];
  }
  return [clockText(workload.expires_at, session, texts), texts.__('%1 left', span(left, texts.__))];
}

function graceLeft(session: Session, grace: string, texts: Texts): string {
  return texts.__('%1 left', span((Date.parse(grace) - session.now()) / 1000, texts.__));
}

/** Why it ends then: the rule that binds, in words where it is one of the known ones. */
export function ruleText(workload: IWorkload, texts: Texts): string {
  const lease = workload.lease_seconds === null ? '' : span(workload.lease_seconds, texts.__);
  const known: Record<string, () => string> = {
    lease: () => texts.__('%1 lease of queue %2', lease, workload.queue),
    extension: () => texts.__('extended lease of queue %1', workload.queue),
    max: () => texts.__('longest time of queue %1', workload.queue),
    window: () => texts.__('booked window of queue %1', workload.queue),
    idle: () => texts.__('idle rule of queue %1', workload.queue)
  };
  const rule = workload.binding_rule ?? 'lease';
  return known[rule]?.() ?? texts.__('%1 (queue %2)', rule, workload.queue);
}

/** Money as the user's language writes it. */
export function moneyText(money: IMoney, texts: Texts): string {
  const amount = Number(money.amount);
  try {
    const style = { style: 'currency', currency: money.currency, currencyDisplay: 'narrowSymbol' } as const;
    return new Intl.NumberFormat(texts.locale, style).format(amount);
  } catch {
    // Not one of the currencies that the browser knows, such as an inner unit of account.
    return `${amount.toFixed(2)} ${money.currency}`;
  }
}

/** The rows of the popover: what, and its value. */
export function rowsOf(session: Session, workload: IWorkload, texts: Texts): [string, string][] {
  const rows: [string, string][] = [];
  const left = session.left();
  if (workload.expires_at !== null && left !== null) {
    const end = clockText(workload.expires_at, session, texts);
    const grace = workload.grace_until;
    rows.push([
      texts.__('Ends'),
      grace === null ? end : texts.__('%1, grace to %2', end, clockText(grace, session, texts))
    ]);
    rows.push([texts.__('Because of'), ruleText(workload, texts)]);
  } else {
    rows.push([texts.__('Ends'), texts.__('no time limit')]);
    rows.push([texts.__('Queue'), workload.queue]);
  }
  if (workload.cost !== null) {
    rows.push([texts.__('Cost so far'), moneyText(workload.cost, texts)]);
  }
  if (workload.extensions_left !== null) {
    rows.push([texts.__('Extensions left'), `${workload.extensions_left}`]);
  }
  rows.push(...idleRows(session, workload, texts));
  if (workload.extension?.state === 'needs_approval') {
    const by = span(workload.extension.by_seconds, texts.__);
    const who = workload.extension.needs.join(', ') || texts.__('an approver');
    rows.push([texts.__('Asked for'), texts.__('+%1, waits for %2', by, who)]);
  }
  const offline = session.offline();
  if (offline !== null) {
    rows.push([texts.__('Last answer'), texts.__('%1 ago', span(offline, texts.__))]);
  }
  return rows;
}

/** Whether more time can still be asked for. */
export function isRunning(workload: IWorkload | null): workload is IWorkload {
  return workload !== null && !OVER.includes(workload.state);
}
