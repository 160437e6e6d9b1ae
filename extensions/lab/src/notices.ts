/** Warnings as toasts: each once, over reloads and tabs, because the server hands each to one tab only. */
import { Notification } from '@jupyterlab/apputils';

import type { Actions } from './actions';
import { INotice, messageOf } from './api';
import { canKeep, idleText, isAsked } from './idle';
import { clockText, isOver, ruleText } from './line';
import { fitting, span } from './remaining';
import type { Session } from './session';
import type { Texts } from './texts';

const MOVED_MS = 60000;

/** The text of a warning, at most 140 characters: the reason is left out before anything is cut. */
export function noticeText(notice: INotice, session: Session, texts: Texts): string {
  const { __ } = texts;
  const workload = session.workload;
  const at = clockText(notice.deadline, session, texts);
  const left = span(Math.max(0, (Date.parse(notice.deadline) - session.now()) / 1000), __);
  if (notice.kind === 'extension_granted' || notice.kind === 'extension_denied') {
    return decidedText(notice, session, texts);
  }
  if (notice.kind === 'idle' || notice.kind === 'kernel_idle') {
    return idleText(notice, session, texts);
  }
  if (notice.threshold_seconds <= 120) {
    const grace = workload?.grace_until ? clockText(workload.grace_until, session, texts) : null;
    return fitting(
      grace === null
        ? __('%1 left (%2). Notebooks are being saved now.', left, at)
        : __('%1 left (%2, grace to %3). Notebooks are being saved now.', left, at, grace)
    );
  }
  if (notice.threshold_seconds <= 600) {
    return fitting(__('%1 left (%2). Extend now, or save what you need: variables are lost.', left, at));
  }
  const rule = workload === null ? '' : ruleText(workload, texts);
  const long = __('This session stops at %1 (%2): %3. Files are kept, variables are lost.', at, left, rule);
  const short = __('This session stops at %1 (%2). Files are kept, variables are lost.', at, left);
  return [...long].length <= 140 ? long : fitting(short);
}

/** What became of a request for more time, by whom and why. */
function decidedText(notice: INotice, session: Session, texts: Texts): string {
  const { __ } = texts;
  const granted = notice.kind === 'extension_granted';
  const request = session.workload?.extension ?? null;
  const at = clockText(notice.deadline, session, texts);
  if (request === null || !notice.id.startsWith(`${request.id}-`)) {
    return granted ? __('More time was approved, until %1.', at) : __('More time was declined.');
  }
  const by = request.decided_by ?? '';
  const why = request.decision_reason ? __(' Reason: %1', request.decision_reason) : '';
  return fitting((granted ? __('Approved until %1 by %2.', at, by) : __('Declined by %1.', by)) + why);
}

/** Shows what the session brings. */
export class Notices {
  constructor(
    private session: Session,
    private texts: Texts,
    private actions: Actions
  ) {
    session.changed.connect(() => void this.show());
  }

  private async show(): Promise<void> {
    const end = this.session.workload?.expires_at ?? null;
    const moved = this.last !== null && end !== null && Date.parse(end) > this.last.deadline + MOVED_MS;
    if (this.last !== null && (moved || isOver(this.session))) {
      // The end has moved on, or come: what the toast says is no longer true.
      Notification.dismiss(this.last.toast);
      this.last = null;
    }
    if (this.question !== null && !isAsked(this.session.workload)) {
      // It was answered, here or in another tab, or something runs again.
      Notification.dismiss(this.question);
      this.question = null;
    }
    for (const notice of this.session.unshown) {
      if (notice.kind === 'idle' && !this.isOpen(notice)) {
        continue;
      }
      if (!this.claimed.has(notice.id)) {
        this.claimed.add(notice.id);
        await this.claim(notice);
      }
    }
  }

  private async claim(notice: INotice): Promise<void> {
    try {
      if (await this.session.api.claimNotice(notice.id)) {
        this.toast(notice);
      }
    } catch (error) {
      // Not claimed by anybody: it stays unshown at the server and comes again with the next answer.
      this.claimed.delete(notice.id);
      console.warn(`hubgov: a warning could not be claimed: ${messageOf(error)}`);
    }
  }

  private toast(notice: INotice): void {
    const { __ } = this.texts;
    if (notice.kind.startsWith('extension_')) {
      const kind = notice.kind === 'extension_granted' ? 'success' : 'warning';
      Notification.emit(noticeText(notice, this.session, this.texts), kind, { autoClose: false });
      return;
    }
    if (notice.kind === 'kernel_idle') {
      Notification.info(noticeText(notice, this.session, this.texts), { autoClose: false });
      return;
    }
    if (notice.kind === 'idle') {
      this.ask(notice);
      return;
    }
    // A newer warning says all that the older one said, with less time left.
    if (this.last !== null) {
      Notification.dismiss(this.last.toast);
    }
    const toast = Notification.warning(noticeText(notice, this.session, this.texts), {
      autoClose: false,
      actions: [
        { label: __('Extend'), displayType: 'accent', callback: () => void this.actions.extend() },
        { label: __('Why'), callback: () => void this.actions.why() }
      ]
    });
    this.last = { toast, deadline: Date.parse(notice.deadline) };
  }

  /** Whether the question is still one: the last of its kind, and not answered yet. */
  private isOpen(notice: INotice): boolean {
    const asked = this.session.workload?.notices.filter(found => found.kind === 'idle') ?? [];
    return isAsked(this.session.workload) && asked[asked.length - 1]?.id === notice.id;
  }

  private ask(notice: INotice): void {
    const { __ } = this.texts;
    if (this.question !== null) {
      Notification.dismiss(this.question);
    }
    const keep = { label: __('Keep'), displayType: 'accent' as const, callback: () => void this.actions.keep() };
    this.question = Notification.warning(noticeText(notice, this.session, this.texts), {
      autoClose: false,
      actions: [
        ...(canKeep(this.session.workload) ? [keep] : []),
        { label: __('Return now'), callback: () => void this.actions.stop() },
        { label: __('Why'), callback: () => void this.actions.why() }
      ]
    });
  }

  private question: string | null = null;
  private claimed = new Set<string>();
  private last: { toast: string; deadline: number } | null = null;
}
