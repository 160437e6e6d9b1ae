/** The popover above the status item: when it stops and why, what it cost, and what can be done. */
import { Widget } from '@lumino/widgets';

import type { Actions } from './actions';
import { addRow, element } from './decision';
import { canKeep } from './idle';
import { deviceText, lineOf, rowsOf } from './line';
import type { Session } from './session';
import type { Texts } from './texts';

/** Draws itself again whenever the session changes; the buttons stay, so that focus isn't lost. */
export class Popover extends Widget {
  constructor(
    private session: Session,
    private texts: Texts,
    private actions: Actions,
    private dismiss: () => void
  ) {
    super();
    const { __ } = texts;
    this.addClass('hubgov-Popover');
    this.node.setAttribute('role', 'dialog');
    this.node.setAttribute('aria-label', __('GPU session'));
    this.extend = this.button('', () => actions.extend(), 'jp-mod-accept');
    this.keep = this.button(__('Keep'), () => actions.keep(), 'jp-mod-accept');
    this.other = this.button(__('Other time…'), () => actions.extendOther());
    this.why = this.button(__('Why'), () => actions.why());
    this.stop = this.button(__('Stop now'), () => actions.stop(), 'hubgov-Stop');
    const buttons = element('div', '', 'hubgov-Buttons');
    buttons.append(this.keep, this.extend, this.other, this.why, this.stop);
    this.rows.className = 'hubgov-Rows';
    this.node.append(this.title_, this.note, this.rows, buttons);
    session.changed.connect(this.draw, this);
    this.draw();
  }

  /** Put the focus on the first thing that can be done. */
  focus(): void {
    const buttons = [this.keep, this.extend, this.other, this.why, this.stop];
    buttons.find(button => !button.disabled && !button.hidden)?.focus();
  }

  dispose(): void {
    this.session.changed.disconnect(this.draw, this);
    super.dispose();
  }

  private draw(): void {
    const { __ } = this.texts;
    const workload = this.session.workload;
    this.title_.textContent =
      workload === null ? lineOf(this.session, this.texts) : deviceText(workload, this.texts);
    this.title_.classList.toggle('hubgov-mod-simulated', workload?.simulated === true);
    this.note.textContent = workload?.simulated ? __('A simulated device: no real GPU is used.') : '';
    this.note.hidden = !this.note.textContent;
    this.rows.replaceChildren();
    if (workload !== null) {
      rowsOf(this.session, workload, this.texts).forEach(([name, value]) => addRow(this.rows, name, value));
    }
    const step = this.actions.step;
    this.extend.hidden = step === null;
    this.extend.textContent = step === null ? '' : __('Extend to %1', this.actions.preview(step));
    this.keep.hidden = !canKeep(workload);
    this.other.hidden = !workload?.expires_at;
    for (const button of [this.keep, this.extend, this.other, this.why, this.stop]) {
      button.disabled = !this.actions.enabled;
      button.title = button.disabled ? this.actions.disabledBecause : '';
    }
  }

  private button(label: string, act: () => Promise<void>, kind = ''): HTMLButtonElement {
    const made = document.createElement('button');
    made.type = 'button';
    made.textContent = label;
    made.className = `jp-mod-styled ${kind}`;
    made.onclick = () => {
      this.dismiss();
      void act();
    };
    return made;
  }

  private title_ = element('h3', '');
  private note = element('p', '', 'hubgov-Note');
  private rows = document.createElement('dl');
  private keep: HTMLButtonElement;
  private extend: HTMLButtonElement;
  private other: HTMLButtonElement;
  private why: HTMLButtonElement;
  private stop: HTMLButtonElement;
}
