/** Time left, as numbers and as text. Pure: no browser, no Lab, so that it is tested by itself. */

/** Turns an English text with %1, %2 … into the user's language. */
export type Say = (text: string, ...values: string[]) => string;

/** 0 nothing special, 1 soon, 2 very soon, 3 now. */
export type Level = 0 | 1 | 2 | 3;

/** The service's clock as read with an answer: its time, ours at that moment, and how fast it runs. */
export interface IReading {
  service: number;
  local: number;
  rate: number;
}

/** The service's time now, in milliseconds. Our own clock only measures the span since the answer. */
export function serviceNow(reading: IReading, local: number): number {
  return reading.service + Math.max(0, local - reading.local) * reading.rate;
}

/** Whether the machine slept, or the page was frozen, between two ticks that should be `every` ms apart. */
export function slept(before: number, now: number, every: number): boolean {
  return now - before > 3 * every + 2000 || now < before - 1000;
}

/** Milliseconds between two drawings: a second below two minutes, half a minute above ten. */
export function redrawAfter(seconds: number, offline: boolean): number {
  return seconds <= 120 ? 1000 : seconds <= 600 || offline ? 5000 : 30000;
}

/** The span in whole units: "1 h 42 m", "9 m", "42 s"; two units at most, never rounded up. */
export function span(seconds: number, say: Say): string {
  const whole = Math.max(0, Math.floor(seconds));
  const d = Math.floor(whole / 86400);
  const h = Math.floor((whole % 86400) / 3600);
  const m = Math.floor((whole % 3600) / 60);
  const s = whole % 60;
  if (d > 0) {
    return h > 0 ? say('%1 d %2 h', `${d}`, `${h}`) : say('%1 d', `${d}`);
  }
  if (h > 0) {
    return m > 0 ? say('%1 h %2 m', `${h}`, `${m}`) : say('%1 h', `${h}`);
  }
  if (whole >= 120 || (m > 0 && s === 0)) {
    return say('%1 m', `${m}`);
  }
  return m > 0 ? say('%1 m %2 s', `${m}`, `${s}`) : say('%1 s', `${s}`);
}

/** Local wall clock "18:30", with the weekday when it is another day, with the date when it is far. */
export function clock(at: number, now: number, locale: string, timeZone?: string): string {
  const time = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23', timeZone } as const;
  const day = (moment: number) =>
    new Intl.DateTimeFormat('en-CA', { dateStyle: 'short', timeZone }).format(moment);
  const text = new Intl.DateTimeFormat(locale, time).format(at);
  if (day(at) === day(now)) {
    return text;
  }
  const far = Math.abs(at - now) > 6 * 86400000;
  const date = far ? ({ month: 'short', day: 'numeric' } as const) : ({ weekday: 'short' } as const);
  return `${new Intl.DateTimeFormat(locale, { ...date, timeZone }).format(at)} ${text}`;
}

/**
 * How near the end is. The steps are 30, 10 and 2 minutes; on a lease below an hour they are those of the
 * warnings issued so far, else a half, a sixth and a thirtieth of it: 30 minutes of 40 would always warn.
 */
export function level(left: number, lease: number | null, warned: number[]): Level {
  let steps = [1800, 600, 120];
  if (lease !== null && lease > 0 && lease < 3600) {
    const issued = [...new Set(warned)].filter(step => step > 0 && step < lease);
    issued.sort((one, other) => other - one);
    steps = [0, 1, 2].map(n => Math.min(issued[n] ?? Infinity, lease / [2, 6, 30][n]));
  }
  return left <= steps[2] ? 3 : left <= steps[1] ? 2 : left <= steps[0] ? 1 : 0;
}

/** The text at most `limit` characters long, cut with an ellipsis; Lab would cut it without saying so. */
export function fitting(text: string, limit = 140): string {
  const characters = [...text];
  return characters.length <= limit ? text : `${characters.slice(0, limit - 1).join('')}…`;
}
