/** The session as this tab knows it: kept up to date by one waiting request, and told to everybody who shows it. */
import { Signal } from '@lumino/signaling';

import { Api, ApiError, INotice, ISnapshot, IWorkload } from './api';
import { IReading, Level, level, serviceNow, slept } from './remaining';

const VISIBLE_SECONDS = 15;
const HIDDEN_SECONDS = 60;
const GAP_MS = 500;
const FIRST_RETRY_MS = 1000;
const LAST_RETRY_MS = 60000;
const WATCH_MS = 5000;

/**
 * Asks `session` for ever. The request waits at the server until something changes, at most 15 s while the
 * page is visible and 60 s while it is hidden, so a warning or a save arrives at once in both.
 */
export class Session {
  constructor(readonly api: Api) {}

  /** Emitted when anything shown may have changed. */
  readonly changed = new Signal<this, void>(this);

  /** Emitted when the session becomes governed, or turns out not to be. */
  readonly governedChanged = new Signal<this, void>(this);

  get governed(): boolean {
    return this.snapshot?.governed === true;
  }

  get workload(): IWorkload | null {
    return this.snapshot?.workload ?? null;
  }

  get unshown(): INotice[] {
    return this.snapshot?.unshown_notices ?? [];
  }

  get resumed(): boolean {
    return this.snapshot?.resumed ?? true;
  }

  /** The service's time, in milliseconds. */
  now(): number {
    return serviceNow(this.reading, Date.now());
  }

  /** Seconds until the end; null without one. */
  left(): number | null {
    const end = this.workload?.expires_at;
    return end ? (Date.parse(end) - this.now()) / 1000 : null;
  }

  /** Seconds since the last good answer of the service; null while it answers. */
  offline(): number | null {
    const lost = this.lostAt === null ? null : (Date.now() - this.lostAt) / 1000;
    const behind = this.snapshot?.offline_seconds ?? null;
    const since = behind === null ? null : behind + (Date.now() - this.reading.local) / 1000;
    return lost === null && since === null ? null : Math.max(lost ?? 0, since ?? 0);
  }

  /** How near the end is. */
  level(): Level {
    const left = this.left();
    const workload = this.workload;
    if (left === null || workload === null) {
      return 0;
    }
    const warned = workload.notices.filter(n => n.kind === 'expiring').map(n => n.threshold_seconds);
    return level(left, workload.lease_seconds, warned);
  }

  /** Begin to ask. Ends by itself on a server that nobody governs. */
  start(): void {
    document.addEventListener('visibilitychange', () => this.poke());
    window.addEventListener('focus', () => this.poke());
    window.addEventListener('online', () => this.poke());
    window.addEventListener('pagehide', () => {
      // An answer can't be waited for any more; without it the save waits its full time for this tab.
      this.api.leave().catch(() => undefined);
    });
    let before = Date.now();
    window.setInterval(() => {
      const now = Date.now();
      // After a sleep the waiting request hangs on a dead connection: ask anew, and draw the true time now.
      if (slept(before, now, document.hidden ? 60000 : WATCH_MS)) {
        this.changed.emit();
        this.poke();
      }
      before = now;
    }, WATCH_MS);
    void this.run();
  }

  /** Ask now instead of at the end of the current wait. */
  poke(): void {
    this.asked = true;
    this.request?.abort();
    this.wake?.();
  }

  private async run(): Promise<void> {
    let retry = FIRST_RETRY_MS;
    for (;;) {
      try {
        this.accept(await this.next());
        retry = FIRST_RETRY_MS;
        if (!this.governed) {
          return;
        }
        // No pause on a hidden page: its timers may be held back for a minute, and a save with them.
        if (!document.hidden) {
          await this.pause(GAP_MS);
        }
      } catch (error) {
        if (this.asked) {
          continue;
        }
        if (error instanceof ApiError && error.status === 404 && this.snapshot === null) {
          return;
        }
        this.lostAt ??= Date.now();
        this.changed.emit();
        await this.pause(retry);
        retry = Math.min(retry * 2, LAST_RETRY_MS);
      }
    }
  }

  private async next(): Promise<ISnapshot> {
    const wait = document.hidden ? HIDDEN_SECONDS : VISIBLE_SECONDS;
    const waiting = this.snapshot !== null && this.lostAt === null && !this.asked;
    this.asked = false;
    const request = new AbortController();
    this.request = request;
    const timer = window.setTimeout(() => request.abort(), (waiting ? wait + 10 : 10) * 1000);
    try {
      return await this.api.session(
        waiting ? this.snapshot!.revision : null,
        wait,
        this.loadedFor,
        request.signal
      );
    } finally {
      window.clearTimeout(timer);
      this.request = null;
    }
  }

  private accept(snapshot: ISnapshot): void {
    const governed = this.governed;
    this.snapshot = snapshot;
    this.loadedFor ||= snapshot.workload?.id ?? '';
    this.lostAt = null;
    if (snapshot.governed) {
      this.reading = { service: Date.parse(snapshot.now), local: Date.now(), rate: snapshot.rate };
    }
    if (governed !== this.governed) {
      this.governedChanged.emit();
    }
    this.changed.emit();
  }

  private pause(milliseconds: number): Promise<void> {
    return new Promise(resolve => {
      const timer = window.setTimeout(resolve, milliseconds);
      this.wake = () => {
        window.clearTimeout(timer);
        resolve();
      };
    });
  }

  private snapshot: ISnapshot | null = null;
  private loadedFor = '';
  private reading: IReading = { service: Date.now(), local: Date.now(), rate: 1 };
  private lostAt: number | null = null;
  private asked = false;
  private request: AbortController | null = null;
  private wake: (() => void) | null = null;
}
