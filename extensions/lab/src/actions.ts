/** What a user can do about the session: extend it, ask why, stop it. */
import { Dialog, Notification, showDialog } from '@jupyterlab/apputils';
import { Widget } from '@lumino/widgets';

import { IExtendAnswer, messageOf } from './api';
import { element, showDecision } from './decision';
import { clockText, isRunning } from './line';
import { fitting, span } from './remaining';
import type { Session } from './session';
import type { Texts } from './texts';

const CHOICES = [1800, 3600, 7200, 14400, 28800];
const LEAST = 60;

/** The extensions to choose from: those that the longest time leaves room for, and what is left of it. */
export function choices(room: number): number[] {
  const fitting = CHOICES.filter(seconds => seconds <= room);
  const all = fitting.length < CHOICES.length && room >= LEAST ? [...fitting, room] : fitting;
  // With no room at all the service says which rule it is, and what can be done.
  return all.length > 0 ? [...new Set(all)] : CHOICES.slice(0, 1);
}

/** The actions, shared by the popover, the toasts and the commands. */
export class Actions {
  constructor(
    private session: Session,
    private texts: Texts
  ) {}

  /** Whether anything can be changed now; a service that doesn't answer can grant nothing. */
  get enabled(): boolean {
    return isRunning(this.session.workload) && this.session.offline() === null;
  }

  /** Why not, for the tooltip of a disabled button. */
  get disabledBecause(): string {
    return this.session.offline() === null
      ? this.texts.__('The session is over.')
      : this.texts.__('The governing service does not answer. What runs goes on.');
  }

  /** Seconds that the policy's longest time still leaves; Infinity without one. */
  get room(): number {
    const hard = Date.parse(this.session.workload?.hard_end_at ?? '') || Infinity;
    return Math.max(0, Math.floor((hard - this.end) / 1000));
  }

  /** Seconds of the extension that one click gives; null when the policy gives none. */
  get step(): number | null {
    const workload = this.session.workload;
    const whole = workload?.extension_step_seconds ?? 0;
    const step = Math.min(whole, this.room);
    const worthIt = step > 0 && (step === whole || step >= LEAST);
    return workload?.expires_at && workload.extensions_left !== 0 && worthIt ? step : null;
  }

  /** The new end that an extension would bring. */
  preview(seconds: number): string {
    return clockText(new Date(this.end + seconds * 1000).toISOString(), this.session, this.texts);
  }

  private get end(): number {
    return Date.parse(this.session.workload?.expires_at ?? '') || this.session.now();
  }

  /** Extend by the policy's step, or ask how long where there is none. */
  async extend(): Promise<void> {
    const step = this.step;
    await (step === null ? this.extendOther() : this.request(step, ''));
  }

  /** Ask how long and why, then extend. */
  async extendOther(): Promise<void> {
    const { __ } = this.texts;
    const body = new ExtendForm(this.texts, choices(this.room), seconds => this.preview(seconds));
    const result = await showDialog({
      title: __('Extend this session'),
      body,
      focusNodeSelector: 'select',
      buttons: [Dialog.cancelButton({ label: __('Cancel') }), Dialog.okButton({ label: __('Extend') })]
    });
    if (result.button.accept && result.value !== null) {
      // What needs an approval needs the person's own words: the service asks for them where they are missing.
      await this.request(result.value.seconds, result.value.reason);
    }
  }

  /** Keep the session although it is idle: one for each time that it was asked, whatever tab it comes from. */
  async keep(): Promise<void> {
    const { __ } = this.texts;
    const asked = this.session.workload?.notices.filter(notice => notice.kind === 'idle') ?? [];
    try {
      await this.session.api.keep(`keep-${asked[asked.length - 1]?.id ?? this.session.api.tab}`);
    } catch (error) {
      Notification.error(fitting(__('Not kept: %1', messageOf(error))), { autoClose: false });
    }
    this.session.poke();
  }

  /** Show the decision that explains where the session stands. */
  async why(): Promise<void> {
    const { __ } = this.texts;
    try {
      await showDecision(__('Why'), await this.session.api.why(), this.session, this.texts);
    } catch (error) {
      Notification.error(fitting(__('No answer: %1', messageOf(error))), { autoClose: 8000 });
    }
  }

  /** End the session, after asking. The service has the documents saved before it stops the server. */
  async stop(): Promise<void> {
    const { __ } = this.texts;
    const result = await showDialog({
      title: __('Stop this session now?'),
      body: __('Open documents are saved first. Variables in kernels are lost, and the GPU is given back.'),
      buttons: [
        Dialog.cancelButton({ label: __('Keep running') }),
        Dialog.warnButton({ label: __('Stop now') })
      ]
    });
    if (!result.button.accept) {
      return;
    }
    try {
      await this.session.api.stop('');
      Notification.info(__('Documents are being saved; then the GPU is given back.'), { autoClose: false });
    } catch (error) {
      Notification.error(fitting(__('Not stopped: %1', messageOf(error))), { autoClose: false });
    }
    this.session.poke();
  }

  /** One wish at a time: a double click, or a click in the toast and one in the popover, is one extension. */
  private request(seconds: number, reason: string): Promise<void> {
    this.running ??= this.send(seconds, reason).finally(() => {
      this.running = null;
    });
    return this.running;
  }

  private async send(seconds: number, reason: string): Promise<void> {
    const { __ } = this.texts;
    // The key of a wish that got no answer is used again for the same wish: it may have been granted.
    if (this.open?.seconds !== seconds || this.open.reason !== reason) {
      this.open = { seconds, reason, key: `lab-${this.session.api.tab}-${Date.now().toString(36)}` };
    }
    try {
      const answer = await this.session.api.extend(seconds, reason, this.open.key);
      if (answer.outcome !== 'failed') {
        this.open = null;
      }
      await this.tell(answer, seconds);
    } catch (error) {
      Notification.error(fitting(__('Not extended: %1', messageOf(error))), { autoClose: false });
    }
    this.session.poke();
  }

  private async tell(answer: IExtendAnswer, seconds: number): Promise<void> {
    const { __ } = this.texts;
    const by = span(answer.extension?.by_seconds ?? seconds, __);
    const end = answer.extension?.expires_at ?? answer.workload?.expires_at ?? null;
    const left = answer.workload?.extensions_left ?? null;
    if (answer.outcome === 'granted' && end !== null) {
      const until = clockText(end, this.session, this.texts);
      const text =
        left === null
          ? __('Extended to %1 (+%2).', until, by)
          : __('Extended to %1 (+%2). Extensions left: %3.', until, by, `${left}`);
      Notification.success(fitting(text), { autoClose: 8000 });
    } else if (answer.outcome === 'needs_approval' && answer.decision !== null) {
      await showDecision(__('Not granted yet: it needs an approval'), answer.decision, this.session, this.texts);
    } else if (answer.decision !== null) {
      await showDecision(__('Not extended'), answer.decision, this.session, this.texts);
    } else {
      const because = answer.error?.message ?? '';
      const text = answer.outcome === 'ended' ? __('The session is over.') : because;
      Notification.error(fitting(__('Not extended: %1', text)), { autoClose: false });
    }
  }

  private running: Promise<void> | null = null;
  private open: { seconds: number; reason: string; key: string } | null = null;
}

/** How long and why, with the new stop time shown before it applies. */
class ExtendForm extends Widget implements Dialog.IBodyWidget<{ seconds: number; reason: string }> {
  constructor(texts: Texts, offered: number[], preview: (seconds: number) => string) {
    super();
    const { __ } = texts;
    this.addClass('hubgov-Form');
    for (const seconds of offered) {
      const option = element('option', __('+%1, until %2', span(seconds, __), preview(seconds)));
      (option as HTMLOptionElement).value = `${seconds}`;
      this.seconds.append(option);
    }
    this.seconds.value = `${offered.includes(3600) ? 3600 : offered[offered.length - 1]}`;
    this.seconds.className = 'jp-mod-styled';
    this.reason.className = 'jp-mod-styled';
    this.reason.rows = 3;
    this.reason.maxLength = 2000;
    this.node.append(labelled(__('Until when'), this.seconds), labelled(__('Reason'), this.reason));
  }

  getValue(): { seconds: number; reason: string } {
    return { seconds: Number(this.seconds.value), reason: this.reason.value.trim() };
  }

  private seconds = document.createElement('select');
  private reason = document.createElement('textarea');
}

function labelled(name: string, field: HTMLElement): HTMLElement {
  const label = element('label', '');
  label.append(element('span', name), field);
  return label;
}
