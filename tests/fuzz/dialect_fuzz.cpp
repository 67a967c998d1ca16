// Any bytes as events, answers and requests of any API: assemblers, splitters and translators never
// crash, and what they build stays within bounds.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "gateway/dialects/translate.hpp"
#include "gateway/json_guard.hpp"

namespace {

using fixpoint::Endpoint;
using fixpoint::Json;
using fixpoint::SseEvent;

constexpr Endpoint kAll[] = {Endpoint::chat_completions, Endpoint::completions,
                             Endpoint::responses,        Endpoint::embeddings,
                             Endpoint::messages,         Endpoint::count_tokens};

// An input of n bytes cannot make more than this: indices address at most 1024 items, of which a
// few are made by one event.
constexpr std::size_t kMaxBlowUp = 1 << 20;

void check_size(const Json& answer, std::size_t input) {
  const auto text = answer.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 16 * input + kMaxBlowUp) std::abort();
}

// Lines are events; a line that begins with ':' names the next one.
template <class Take>
void for_each_event(std::string_view text, Take take) {
  std::string name;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.starts_with(':')) {
      name = line.substr(1);
    } else if (!take(SseEvent{name, std::string(line)})) {
      return;
    }
  }
}

void try_stream(Endpoint endpoint, std::string_view text) {
  const auto assembler = fixpoint::make_assembler(endpoint);
  if (!assembler) return;
  bool ended = false;
  for_each_event(text, [&](const SseEvent& event) {
    const auto step = assembler->add(event);
    ended = step && *step == fixpoint::StreamStep::end;
    return step && *step == fixpoint::StreamStep::more;
  });
  const Json answer = assembler->assemble();
  check_size(answer, text.size());
  fixpoint::summarize(endpoint, answer);
  if (!ended || !fixpoint::problem_of(endpoint, answer).empty()) return;
  // What was assembled can be split, and its stream is one.
  const auto again = fixpoint::make_assembler(endpoint);
  for (const auto& event : fixpoint::split_answer(endpoint, answer, true)) {
    const auto step = again->add(event);
    // An item that came alone may stand deeper in the whole answer.
    if (!step && step.error().message.find("nested deeper") == std::string::npos) std::abort();
    if (!step) return;
  }
}

void try_answer(const Json& answer) {
  for (const Endpoint endpoint : kAll) {
    fixpoint::problem_of(endpoint, answer);
    fixpoint::summarize(endpoint, answer);
    fixpoint::split_answer(endpoint, answer, true);
  }
}

void try_translation(Endpoint client, Endpoint maker, std::string_view text, const Json& json) {
  if (!fixpoint::can_translate(client, maker)) return;
  const auto request = fixpoint::translate_request(client, maker, json);
  if (request) {
    check_size(request->body, text.size());
  } else if (request.error().param.empty() || request.error().message.empty()) {
    std::abort();  // a refusal names its member
  }
  if (json.is_object()) {
    const auto plain = fixpoint::make_translator(client, maker, json)->plain(json);
    if (plain) check_size(*plain, text.size());
  }
  const auto translator = fixpoint::make_translator(client, maker, json);
  const auto assembler = fixpoint::make_assembler(client);
  for_each_event(text, [&](const SseEvent& event) {
    const auto out = translator->event(event);
    if (!out) return false;
    for (const auto& each : *out) {
      const auto step = assembler->add(each);
      if (step && *step == fixpoint::StreamStep::end) return false;
      if (!step) std::abort();
    }
    return true;
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const Endpoint endpoint : kAll) try_stream(endpoint, text);
  const auto parsed = fixpoint::parse_json(text);
  const Json json = parsed ? *parsed : Json();
  if (parsed) try_answer(json);
  for (const Endpoint client : kAll) {
    for (const Endpoint maker : kAll) try_translation(client, maker, text, json);
    fixpoint::translate_error(fixpoint::api_of(client), 500, std::string(text), "r");
    fixpoint::error_event(client, std::string(text), 1);
  }
  return 0;
}
