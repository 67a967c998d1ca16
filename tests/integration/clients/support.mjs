// What the conversations of Node share.
import assert from 'node:assert/strict';

export const mock = process.env.FIXPOINT_MOCK;
export const local = process.env.FIXPOINT_LOCAL ?? '';
export const question = 'What is the capital of France? é 漢字 🙂';
export const city = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false };

export const stats = async () => (await fetch(mock + '/mock/stats')).json();
export const calls = async (model) => (await stats()).by_model[model] ?? 0;

export async function waitUntil(holds, what) {
  for (let i = 0; i < 500; ++i) {
    if (await holds()) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.fail(what);
}
