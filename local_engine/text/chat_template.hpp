// A model's chat template: the Jinja subset that Hugging Face templates use.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "local_engine/result.hpp"

namespace fixpoint::engine {

// Ordered, because templates print objects (tools, arguments) in the order in which they came.
using Json = nlohmann::ordered_json;

struct ChatInput {
  Json messages;  // array of {role, content, ...} as the client sent them
  Json tools;     // array or null
  bool add_generation_prompt = true;
  Json extra = Json::object();  // further template variables
  // What strftime_now() reads, in UTC. A template that prints the date renders another prompt, and
  // so has another cache key and another answer, every day; whoever must get yesterday's text again
  // passes yesterday's time.
  std::function<std::chrono::system_clock::time_point()> clock = std::chrono::system_clock::now;
};

// The language is what transformers gives to chat templates: Jinja with trim_blocks and
// lstrip_blocks, break and continue, {% generation %} (transparent), raise_exception, strftime_now
// and its tojson. Variables: messages, tools, add_generation_prompt, documents (none), bos_token,
// eos_token, and `extra`, which may replace only the last three. Not there, and an error when
// parsed: include, import, extends, block, call, autoescape, recursive loops, * and **
// arguments, and every filter, test and method outside the lists in jinja/.
//
// Immutable after parse(); render() is safe from any thread.
class ChatTemplate {
 public:
  // Errors: unsupported for a construct outside the subset (named with its line), bad_model_file
  // for a syntax error or a source beyond 1 MiB.
  static Result<std::unique_ptr<ChatTemplate>> parse(std::string source, std::string bos_token,
                                                     std::string eos_token);
  ~ChatTemplate();

  // Errors: bad_request with the template's own words (raise_exception) or the undefined operation.
  // Work and output are bounded (a million steps, recursion, 16 MiB of text).
  Result<std::string> render(const ChatInput& input) const;
  const std::string& source() const;

 private:
  struct Impl;
  explicit ChatTemplate(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fixpoint::engine
