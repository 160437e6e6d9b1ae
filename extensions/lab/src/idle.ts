/** What the idle rule says of the session: whether its owner is asked, until when, and how often it may be kept. */
import type { INotice, IWorkload } from './api';
import { clockText } from './line';
import { fitting, span } from './remaining';
import type { Session } from './session';
import type { Texts } from './texts';

/** Whether it counts as idle and is taken back unless somebody says otherwise. */
export function isAsked(workload: IWorkload | null): workload is IWorkload & { idle_deadline: string } {
  const asked = workload?.idle_phase === 'asked' || workload?.idle_phase === 'grace';
  return asked && workload.idle_deadline !== null;
}

/** Whether Keep can be chosen now. */
export function canKeep(workload: IWorkload | null): boolean {
  return isAsked(workload) && (workload.keeps_left ?? 0) > 0;
}

/** Seconds until it is taken back; null while it is not in question. */
export function idleLeft(session: Session): number | null {
  const workload = session.workload;
  return isAsked(workload) ? (Date.parse(workload.idle_deadline) - session.now()) / 1000 : null;
}

/** The parts of the status line while it is in question. */
export function idleParts(session: Session, texts: Texts): string[] | null {
  const workload = session.workload;
  const left = idleLeft(session);
  if (left === null || !isAsked(workload)) {
    return null;
  }
  const at = clockText(workload.idle_deadline, session, texts);
  return [texts.__('idle'), texts.__('returned %1', at), texts.__('%1 left', span(left, texts.__))];
}

/** The rows of the popover: the idle clock or where the question stands, and the keeps that are left. */
export function idleRows(session: Session, workload: IWorkload, texts: Texts): [string, string][] {
  const { __ } = texts;
  const rows: [string, string][] = [];
  const deadline = workload.idle_deadline === null ? '' : clockText(workload.idle_deadline, session, texts);
  if (isAsked(workload)) {
    rows.push([__('Idle'), __('returned at %1 unless you run something', deadline)]);
  } else if (workload.idle_phase === 'kept') {
    rows.push([__('Idle'), __('kept until %1', deadline)]);
  } else if (workload.idle_after_seconds !== null) {
    const quiet = workload.idle_since === null ? 0 : (session.now() - Date.parse(workload.idle_since)) / 1000;
    rows.push([__('Idle'), __('limit %1, now %2', span(workload.idle_after_seconds, __), span(quiet, __))]);
  }
  if (workload.keeps_left !== null && workload.idle_phase !== null && workload.idle_phase !== 'active') {
    rows.push([__('Keeps left'), `${workload.keeps_left}`]);
  }
  return rows;
}

/** The text of the question, or of a kernel that was shut down; at most 140 characters. */
export function idleText(notice: INotice, session: Session, texts: Texts): string {
  const { __ } = texts;
  const quiet = span(notice.quiet_seconds, __);
  if (notice.kind === 'kernel_idle') {
    const name = notice.subject.split('/').pop() || __('A kernel');
    return fitting(
      __('%1: its kernel was idle for %2 and was shut down. The document is saved.', short(name), quiet)
    );
  }
  const at = clockText(notice.deadline, session, texts);
  return fitting(
    canKeep(session.workload)
      ? __(
          'No GPU or kernel activity for %1. This GPU is returned at %2 unless you run something or choose Keep.',
          quiet,
          at
        )
      : __('No GPU or kernel activity for %1. This GPU is returned at %2 unless you run something.', quiet, at)
  );
}

function short(name: string): string {
  return [...name].length <= 40 ? name : `${[...name].slice(0, 39).join('')}…`;
}
