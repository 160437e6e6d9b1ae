/** The texts in the user's language: Lab's catalogue first, then the Chinese one that is built in. */
import { ITranslator, TranslationBundle } from '@jupyterlab/translation';

import zh from '../locale/zh_CN.json';
import type { Say } from './remaining';

const CHINESE: Record<string, string> = zh;

function filled(text: string, values: string[]): string {
  return text.replace(/%(\d)/g, (found, n) => values[Number(n) - 1] ?? found);
}

/**
 * The language to speak: Lab's own where one was chosen. Lab is English without a language pack, whoever uses it;
 * then it is what was chosen on the hub's pages, else the browser's.
 */
function language(ofLab: string): string {
  if (ofLab && !/^en\b|^default$/i.test(ofLab)) {
    return ofLab;
  }
  return /(?:^|;\s*)hubgov_lang=([\w-]+)/.exec(document.cookie)?.[1] ?? navigator.language;
}

/** Says every text of the extension. Chinese works without a language pack being installed. */
export class Texts {
  constructor(private translator: ITranslator) {
    this.bundle = translator.load('hubgov');
  }

  /** The language for dates, numbers and money. */
  get locale(): string {
    return this.chinese ? 'zh-CN' : this.translator.languageCode || 'en';
  }

  /** Whether the interface is in simplified Chinese. */
  get chinese(): boolean {
    return /^zh(-(cn|hans|sg)\b.*)?$/i.test(language(this.translator.languageCode).replace('_', '-'));
  }

  /** The text with its values filled in. */
  readonly __: Say = (text, ...values) => {
    const given = this.bundle.__(text, ...values);
    if (this.chinese && given === filled(text, values) && CHINESE[text]) {
      return filled(CHINESE[text], values);
    }
    return given;
  };

  private bundle: TranslationBundle;
}
