/** What the server extension answers. No token and no address of the service reaches the browser. */
import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';

export interface INotice {
  id: string;
  kind: string;
  threshold_seconds: number;
  deadline: string;
  issued_at: string;
  quiet_seconds: number;
  subject: string;
}

export interface IMoney {
  amount: string;
  currency: string;
}

export interface IWorkload {
  id: string;
  version: number;
  name: string;
  queue: string;
  state: string;
  gpus: number;
  flavor: string | null;
  devices: { node: string; index: number; uuid: string; slice: string | null; simulated: boolean }[];
  simulated: boolean;
  headline: string;
  end_reason: string | null;
  expires_at: string | null;
  grace_until: string | null;
  hard_end_at: string | null;
  binding_rule: string | null;
  lease_seconds: number | null;
  extensions_left: number | null;
  extension_step_seconds: number | null;
  keeps_left: number | null;
  idle_phase: string | null;
  idle_deadline: string | null;
  idle_since: string | null;
  idle_after_seconds: number | null;
  cost: IMoney | null;
  notices: INotice[];
  save_requested: string | null;
  resume_documents: string[];
  extension: IExtension | null;
}

export interface IBlocker {
  code: string;
  need: number;
  have: number;
  limit: number | null;
  unit: string;
  frees_at: string | null;
}

export interface ISignal {
  kind: string;
  level: string;
  text: string;
  busy_at: string | null;
}

export interface IDecision {
  outcome: string;
  code: string;
  headline: string;
  rule: string;
  blockers: IBlocker[];
  next_steps: string[];
  signals: ISignal[];
}

export interface IError {
  code: string;
  message: string;
  hint: string;
}

export interface IExtension {
  id: string;
  state: string;
  by_seconds: number;
  expires_at: string | null;
  needs: string[];
  decided_by: string | null;
  decision_reason: string | null;
}

export interface IExtendAnswer {
  outcome: 'granted' | 'needs_approval' | 'denied' | 'ended' | 'failed';
  extension: IExtension | null;
  decision: IDecision | null;
  error: IError | null;
  workload: IWorkload | null;
}

export interface ISnapshot {
  governed: boolean;
  offline_seconds: number | null;
  workload: IWorkload | null;
  now: string;
  rate: number;
  revision: number;
  resumed: boolean;
  unshown_notices: INotice[];
}

export interface ISavedDocument {
  path: string;
  saved: boolean;
  error: string;
}

/** A refusal or failure of the server extension, with the code and hint it gave. */
export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly hint: string
  ) {
    super(message);
  }
}

/** Talks to `<base_url>/hubgov/` for one browser tab. */
export class Api {
  constructor(private settings: ServerConnection.ISettings) {}

  /** This tab, so that the server knows whom it still waits for when it saves. */
  readonly tab = `${Date.now().toString(36)}-${Math.random().toString(36).slice(2, 12)}`;

  /** `workload`: what this tab was loaded for; empty while it doesn't know. */
  session(after: number | null, wait: number, workload: string, signal: AbortSignal): Promise<ISnapshot> {
    const since = after === null ? '' : `&after=${after}&wait=${wait}`;
    const who = `tab=${this.tab}&visible=${document.hidden ? 0 : 1}&workload=${encodeURIComponent(workload)}`;
    return this.ask(`session?${who}${since}`, { signal });
  }

  extend(seconds: number, reason: string, key: string): Promise<IExtendAnswer> {
    return this.post('extend', { by_seconds: seconds, reason, key });
  }

  /** Keep the session although it is idle. One key for one question: two tabs keep it once. */
  keep(key: string): Promise<unknown> {
    return this.post('keep', { key });
  }

  /** Somebody types or clicks, at this document if at any. */
  edited(path: string | null): Promise<unknown> {
    return this.post('edited', { path });
  }

  stop(reason: string): Promise<unknown> {
    return this.post('stop', { reason });
  }

  why(): Promise<IDecision> {
    return this.ask('why', {});
  }

  async claimNotice(id: string): Promise<boolean> {
    const answer = await this.post<{ first: boolean }>(`notices/${encodeURIComponent(id)}/shown`, {});
    return answer.first;
  }

  async claimResume(): Promise<boolean> {
    return (await this.post<{ first: boolean }>('resume', {})).first;
  }

  documents(paths: string[]): Promise<unknown> {
    return this.post('documents', { tab: this.tab, paths });
  }

  saved(save: string, documents: ISavedDocument[]): Promise<unknown> {
    return this.post('saved', { tab: this.tab, save, documents });
  }

  /** Say that this tab is closing, so that no save waits for it. The request outlives the page. */
  leave(): Promise<unknown> {
    return this.post('documents', { tab: this.tab, paths: [], closed: true }, true);
  }

  private post<T>(path: string, body: object, keepalive = false): Promise<T> {
    return this.ask(path, { method: 'POST', body: JSON.stringify(body), keepalive });
  }

  private async ask<T>(path: string, init: RequestInit): Promise<T> {
    const url = URLExt.join(this.settings.baseUrl, 'hubgov', path);
    const response = await ServerConnection.makeRequest(url, init, this.settings);
    const text = await response.text();
    if (!response.ok) {
      throw refusal(response.status, text);
    }
    return (text ? JSON.parse(text) : null) as T;
  }
}

function refusal(status: number, text: string): ApiError {
  try {
    const error = JSON.parse(text).error;
    return new ApiError(String(error.message), status, String(error.hint ?? ''));
  } catch {
    // A proxy in between answers with a page: its status is all there is to say.
    return new ApiError(`HTTP ${status}`, status, '');
  }
}

/** What went wrong, as one sentence. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
