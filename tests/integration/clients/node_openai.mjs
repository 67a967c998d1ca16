// What a user's program does with the official client for Node.
import assert from 'node:assert/strict';
import OpenAI from 'openai';
import { zodResponseFormat, zodTextFormat } from 'openai/helpers/zod';
import { z } from 'zod';
import { calls, city, local, question, stats, waitUntil } from './support.mjs';

const client = new OpenAI({ maxRetries: 0 });
const messages = [{ role: 'system', content: 'Be brief.' }, { role: 'user', content: question }];
const tools = [{ type: 'function', function: { name: 'weather', parameters: city } }];
const Person = z.object({ name: z.string(), age: z.number().int() });

async function chats(model) {
  const ask = { model, messages, temperature: 0, max_tokens: 24 };
  const plain = await client.chat.completions.create(ask);
  const content = plain.choices[0].message.content;
  assert.ok(content && plain.usage.total_tokens > 0);
  const { data, response } = await client.chat.completions.create(ask).withResponse();
  assert.match(response.headers.get('cache-status'), /hit/);
  assert.equal(data.choices[0].message.content, content);
  let streamed = '';
  for await (const chunk of await client.chat.completions.create({ ...ask, stream: true })) {
    streamed += chunk.choices[0]?.delta?.content ?? '';
  }
  assert.equal(streamed, content);
  const runner = client.chat.completions.stream({ ...ask, stream_options: { include_usage: true } });
  assert.equal((await runner.finalChatCompletion()).choices[0].message.content, content);
}

async function logprobs(model) {
  const ask = { model, messages, temperature: 0, max_tokens: 24, logprobs: true, top_logprobs: 3 };
  const probs = (await client.chat.completions.create(ask)).choices[0].logprobs;
  assert.ok(probs.content.length > 0 && probs.content.every((token) => token.top_logprobs.length === 3));
}

async function responses(model) {
  const ask = { model, input: question, temperature: 0, max_output_tokens: 24 };
  const plain = await client.responses.create(ask);
  assert.ok(plain.output_text);
  let streamed = '';
  let last;
  for await (const event of await client.responses.create({ ...ask, stream: true })) {
    if (event.type === 'response.output_text.delta') streamed += event.delta;
    last = event.type;
  }
  assert.equal(streamed, plain.output_text);
  assert.equal(last, 'response.completed');
  assert.equal((await client.responses.stream(ask).finalResponse()).output_text, plain.output_text);
}

await chats('mock');
await logprobs('mock');
await responses('mock');
await chats('mock-claude');

const called = await client.chat.completions.create({ model: 'mock', messages, tools, temperature: 0 });
assert.equal(called.choices[0].message.tool_calls[0].function.name, 'weather');
let ran = 0;
const runner = client.chat.completions.runTools({
  model: 'mock', messages, temperature: 0, stream: true,
  tools: [{ type: 'function', function: { name: 'weather', parse: JSON.parse, parameters: city, function: () => { ran += 1; return 'sunny'; } } }],
});
assert.match(await runner.finalContent(), /^mock answer/);
assert.equal(ran, 1);

const parsed = await client.chat.completions.parse({ model: 'mock', messages, response_format: zodResponseFormat(Person, 'person') });
assert.equal(parsed.choices[0].message.parsed.age, 7);
const output = await client.responses.parse({ model: 'mock', input: question, text: { format: zodTextFormat(Person, 'person') } });
assert.equal(output.output_parsed.age, 7);

const packed = await client.embeddings.create({ model: 'mock', input: ['one', 'two'] });  // asks for base64 and decodes it
const floats = await client.embeddings.create({ model: 'mock', input: ['one', 'two'], encoding_format: 'float' });
packed.data.forEach((one, i) => one.embedding.forEach((x, j) => assert.ok(Math.abs(x - floats.data[i].embedding[j]) < 1e-6)));

const expectError = (kind, request, check = () => true) =>
  assert.rejects(client.chat.completions.create({ model: 'mock', messages, ...request }),
    (error) => error instanceof kind && check(error));
await expectError(OpenAI.NotFoundError, { model: 'nothing-like-it' }, (error) => error.code === 'model_not_found');
if (local) await expectError(OpenAI.BadRequestError, { messages: [] }, (error) => error.param === 'messages');
for (const [status, kind] of [[400, OpenAI.BadRequestError], [401, OpenAI.AuthenticationError], [403, OpenAI.PermissionDeniedError],
  [404, OpenAI.NotFoundError], [409, OpenAI.ConflictError], [422, OpenAI.UnprocessableEntityError], [429, OpenAI.RateLimitError],
  [500, OpenAI.InternalServerError]]) {
  await expectError(kind, { model: `mock-error-${status}` }, (error) => error.code === 'mock_error');
}
for (const model of ['mock-nodone', 'mock-cut-900']) {
  await assert.rejects(async () => {
    for await (const chunk of await client.chat.completions.create({ model, messages, stream: true })) void chunk;
  }, (error) => error instanceof Error);
}

const patient = new OpenAI({ maxRetries: 2 });
const retried = 'mock-js-retry-2-429-retryafterms-20';
assert.ok((await patient.chat.completions.create({ model: retried, messages })).choices[0].message.content);
assert.equal(await calls(retried), 3);

const before = (await stats()).aborted;
const stream = await client.chat.completions.create({ model: 'mock-stream-400-50', messages, stream: true });
for await (const chunk of stream) { void chunk; break; }
stream.controller.abort();
await waitUntil(async () => (await stats()).aborted === before + 1, "the upstream's work goes on");

if (local) {
  await chats(local);
  await logprobs(local);
  await responses(local);
  assert.ok((await client.models.list()).data.some((model) => model.id === local));
}
console.log('conversation held');
