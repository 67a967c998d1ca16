// What a user's program does with the official client: plain, stream, logprobs, tools, errors.
import assert from 'node:assert/strict';
import OpenAI from 'openai';

const client = new OpenAI({ maxRetries: 0 });
const messages = [{ role: 'system', content: 'Be brief.' }, { role: 'user', content: 'Say something: é 漢字 🙂' }];

for (const model of ['tiny', 'mock']) {
  const ask = { model, messages, temperature: 0, max_tokens: 16 };
  const plain = await client.chat.completions.create(ask);
  const content = plain.choices[0].message.content;
  assert.ok(['stop', 'length'].includes(plain.choices[0].finish_reason));
  assert.ok(plain.usage.total_tokens > 0);

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

  const probs = (await client.chat.completions.create({ ...ask, logprobs: true, top_logprobs: 3 })).choices[0].logprobs;
  assert.ok(probs.content.length > 0 && probs.content.every((token) => token.top_logprobs.length === 3));
}

const tools = [{ type: 'function', function: { name: 'get_weather', parameters: { type: 'object', properties: {} } } }];
const called = await client.chat.completions.create({ model: 'mock', messages, tools, temperature: 0 });
assert.equal(called.choices[0].message.tool_calls[0].function.name, 'get_weather');
assert.deepEqual((await client.models.list()).data.map((model) => model.id), ['tiny']);

const expect = (kind, request, check = () => true) =>
  assert.rejects(client.chat.completions.create({ model: 'mock', messages, ...request }),
    (error) => error instanceof kind && check(error));
await expect(OpenAI.NotFoundError, { model: 'nothing-like-it' }, (error) => error.code === 'model_not_found');
await expect(OpenAI.BadRequestError, { messages: [] }, (error) => error.param === 'messages');
await expect(OpenAI.AuthenticationError, { model: 'mock-error-401' });
await expect(OpenAI.RateLimitError, { model: 'mock-error-429' });
await expect(OpenAI.InternalServerError, { model: 'mock-error-500' });
await assert.rejects(async () => {
  for await (const chunk of await client.chat.completions.create({ model: 'mock-nodone', messages, stream: true })) void chunk;
}, OpenAI.APIError);

console.log('conversation held');
