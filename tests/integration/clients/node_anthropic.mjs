// What a user's program does with Anthropic's client for Node.
import assert from 'node:assert/strict';
import Anthropic from '@anthropic-ai/sdk';
import { calls, city, local, question, stats, waitUntil } from './support.mjs';

const client = new Anthropic({ maxRetries: 0 });
const messages = [{ role: 'user', content: question }];
const tools = [{ name: 'weather', description: 'The weather', input_schema: city }];

async function says(model) {
  const ask = { model, max_tokens: 24, messages, system: 'Be brief.', temperature: 0 };
  const { data, response } = await client.messages.create(ask).withResponse();
  assert.ok(data.content[0].text);
  assert.equal(data.stop_reason, 'end_turn');
  assert.ok(response.headers.get('request-id'));
  const stream = client.messages.stream(ask);
  let text = '';
  stream.on('text', (piece) => { text += piece; });
  assert.equal((await stream.finalMessage()).content[0].text, data.content[0].text);
  assert.equal(text, data.content[0].text);
}

async function callsTools(model) {
  const ask = { model, max_tokens: 99, messages, tools, temperature: 0 };
  const called = await client.messages.create(ask);
  const tool = called.content.at(-1);
  assert.equal(called.stop_reason, 'tool_use');
  assert.equal(tool.name, 'weather');
  assert.deepEqual((await client.messages.stream(ask).finalMessage()).content.at(-1).input, tool.input);
  const after = [...messages, { role: 'assistant', content: called.content },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: tool.id, content: 'sunny' }] }];
  assert.match((await client.messages.create({ ...ask, messages: after })).content[0].text, /^mock answer/);
}

await says('mock-claude');
await says('mock');
await callsTools('mock-claude');
await callsTools('mock');
const thought = await client.messages.stream({ model: 'mock-claude', max_tokens: 2000, messages, thinking: { type: 'enabled', budget_tokens: 1024 } }).finalMessage();
assert.deepEqual(thought.content.map((block) => block.type), ['thinking', 'text']);
assert.ok((await client.messages.countTokens({ model: 'mock-claude', messages })).input_tokens > 0);

for (const [status, kind, type] of [[400, Anthropic.BadRequestError, 'invalid_request_error'], [401, Anthropic.AuthenticationError, 'authentication_error'],
  [404, Anthropic.NotFoundError, 'not_found_error'], [429, Anthropic.RateLimitError, 'rate_limit_error'], [529, Anthropic.InternalServerError, 'overloaded_error']]) {
  await assert.rejects(client.messages.create({ model: `mock-claude-error-${status}`, max_tokens: 9, messages }),
    (error) => error instanceof kind && error.error.error.type === type);
}
for (const model of ['mock-claude-nodone', 'mock-claude-cut-700']) {
  await assert.rejects(client.messages.stream({ model, max_tokens: 9, messages }).finalMessage(), (error) => error instanceof Error);
}

const patient = new Anthropic({ maxRetries: 2 });
const retried = 'mock-claude-js-retry-2-529-retryafterms-20';
assert.ok((await patient.messages.create({ model: retried, max_tokens: 9, messages })).content[0].text);
assert.equal(await calls(retried), 3);

const before = (await stats()).aborted;
const stream = await client.messages.create({ model: 'mock-claude-stream-400-50', max_tokens: 9, messages, stream: true });
for await (const event of stream) { void event; break; }
stream.controller.abort();
await waitUntil(async () => (await stats()).aborted === before + 1, "the upstream's work goes on");

if (local) {
  await says(local);
  const ids = [];
  for await (const model of client.models.list()) ids.push(model.id);
  assert.ok(ids.includes(local));
}
console.log('conversation held');
