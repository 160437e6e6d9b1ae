// The arithmetic of the countdown, on the compiled module that HUBGOV_REMAINING names.
import assert from 'node:assert/strict';
import { test } from 'node:test';

const { clock, fitting, level, redrawAfter, serviceNow, slept, span } = await import(
  process.env.HUBGOV_REMAINING
);
const say = (text, ...values) => text.replace(/%(\d)/g, (_, n) => values[n - 1]);

test('the service clock counts from its last reading', () => {
  const reading = { service: 1_000_000, local: 5_000, rate: 1 };
  assert.equal(serviceNow(reading, 65_000), 1_060_000);
  assert.equal(serviceNow({ ...reading, rate: 60 }, 6_000), 1_060_000);
  assert.equal(serviceNow(reading, 1_000), 1_000_000, 'our clock was set back');
});

test('spans are written in two units and never rounded up', () => {
  const written = {
    '-5': '0 s', 0: '0 s', 42: '42 s', 60: '1 m', 119: '1 m 59 s', 120: '2 m', 599: '9 m', 3599: '59 m',
    3600: '1 h', 6165: '1 h 42 m', 86400: '1 d', 93600: '1 d 2 h'
  };
  for (const [seconds, text] of Object.entries(written)) {
    assert.equal(span(Number(seconds), say), text);
  }
});

test('the wall clock names another day', () => {
  const at = Date.parse('2026-03-02T10:30:00Z');
  const in_ = hours => clock(at + hours * 3_600_000, at, 'en', 'Asia/Shanghai');
  assert.equal(in_(0), '18:30');
  assert.equal(in_(5), '23:30');
  assert.equal(in_(5.5), 'Tue 00:00');
  assert.equal(in_(24 * 7), 'Mar 9 18:30');
  assert.equal(clock(at + 86_400_000, at, 'zh-CN', 'Asia/Shanghai'), '周二 18:30');
});

test('levels follow 30, 10 and 2 minutes on a long lease', () => {
  assert.deepEqual([1801, 1800, 600, 120, -10].map(left => level(left, 14400, [])), [0, 1, 2, 3, 3]);
  assert.equal(level(600, null, []), 2);
});

test('levels follow the warnings issued, or parts of it, on a short lease', () => {
  assert.deepEqual([601, 300, 100, 20].map(left => level(left, 600, [])), [0, 1, 2, 3]);
  assert.deepEqual([260, 240, 100].map(left => level(left, 600, [240, 240])), [0, 1, 2]);
  assert.equal(level(1700, 2400, []), 0);
});

test('drawing is more frequent near the end and while offline', () => {
  assert.deepEqual(
    [[60, false], [300, false], [3600, false], [3600, true]].map(a => redrawAfter(...a)),
    [1000, 5000, 30000, 5000]
  );
});

test('a sleep is a gap between ticks', () => {
  assert.equal(slept(0, 5_100, 5_000), false);
  assert.equal(slept(0, 60_000, 5_000), true);
  assert.equal(slept(10_000, 1_000, 5_000), true);
});

test('a text is cut with an ellipsis, by characters', () => {
  assert.equal(fitting('short'), 'short');
  assert.equal([...fitting('长'.repeat(200))].length, 140);
  assert.ok(fitting('x'.repeat(141)).endsWith('…'));
});
