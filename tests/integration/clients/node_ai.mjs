// Vercel's ai with @ai-sdk/openai: Responses by default, chat when asked.
import assert from 'node:assert/strict';
import { createOpenAI } from '@ai-sdk/openai';
import { APICallError, embedMany, generateText, Output, stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';
import { calls, local, question, stats, waitUntil } from './support.mjs';

const openai = createOpenAI({ baseURL: process.env.OPENAI_BASE_URL });
const kinds = { responses: (name) => openai(name), chat: (name) => openai.chat(name) };
const weather = tool({ inputSchema: z.object({ city: z.string() }), execute: async () => 'sunny' });

for (const [kind, model] of Object.entries(kinds)) {
  for (const name of ['mock', ...(local ? [local] : [])]) {
    const ask = { model: model(name), prompt: question, temperature: 0, maxOutputTokens: 24, maxRetries: 0 };
    const plain = await generateText(ask);
    assert.ok(plain.text && plain.usage.totalTokens > 0, kind);
    const streamed = streamText(ask);
    let text = '';
    for await (const piece of streamed.textStream) text += piece;
    assert.equal(text, plain.text, kind);
    assert.ok((await streamed.usage).totalTokens > 0, kind);
  }

  const steps = await generateText({ model: model('mock'), prompt: question, tools: { weather }, stopWhen: stepCountIs(3), maxRetries: 0 });
  assert.deepEqual(steps.steps.map((step) => step.finishReason), ['tool-calls', 'stop'], kind);
  assert.match(steps.text, /^mock answer/);
  const called = streamText({ model: model('mock'), prompt: question, tools: { weather }, stopWhen: stepCountIs(3), maxRetries: 0 });
  assert.match((await called.steps).at(-1).text, /^mock answer/);

  const { output } = await generateText({ model: model('mock'), prompt: question, maxRetries: 0,
    output: Output.object({ schema: z.object({ name: z.string(), age: z.number().int() }) }) });
  assert.equal(output.age, 7);

  await assert.rejects(generateText({ model: model('mock-error-400'), prompt: question, maxRetries: 0 }),
    (error) => APICallError.isInstance(error) && error.statusCode === 400 && /mock error/.test(error.message));
  const retried = `mock-ai${kind}-retry-1-429-retryafterms-20`;
  assert.ok((await generateText({ model: model(retried), prompt: question, maxRetries: 2 })).text);
  assert.equal(await calls(retried), 2);

  const dead = streamText({ model: model('mock-cut-900'), prompt: question, maxRetries: 0, onError: () => {} });
  const parts = [];
  await assert.doesNotReject(async () => { for await (const part of dead.fullStream) parts.push(part); }).catch(() => parts.push({ type: 'error' }));
  assert.ok(parts.some((part) => part.type === 'error') || !parts.some((part) => part.type === 'finish' && part.finishReason === 'stop'), kind);

  const before = (await stats()).aborted;
  const stop = new AbortController();
  const left = streamText({ model: model('mock-stream-400-50'), prompt: question, abortSignal: stop.signal, onError: () => {}, onAbort: () => {} });
  for await (const piece of left.textStream) { void piece; stop.abort(); break; }
  await waitUntil(async () => (await stats()).aborted === before + 1, "the upstream's work goes on");
}

const { embeddings } = await embedMany({ model: openai.embedding('mock'), values: ['one', 'two'] });
assert.deepEqual(embeddings.map((one) => one.length), [8, 8]);
console.log('conversation held');
