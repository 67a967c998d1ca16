// Any bytes as a chat template: parsing and rendering end, within their limits, with text or an
// Error.
#include <cstddef>
#include <cstdint>
#include <string>

#include "local_engine/text/chat_template.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fixpoint::engine;
  static const ChatInput input = [] {
    ChatInput made;
    made.messages = Json::parse(R"([
      {"role": "system", "content": " Be brief.\n"},
      {"role": "user", "content": [{"type": "text", "text": "Stra\u00dfe \ud83d\ude00"}]},
      {"role": "assistant", "content": null, "tool_calls": [
        {"function": {"name": "f", "arguments": {"b": 1, "a": [true, null, 1.5]}}}]}])");
    made.tools = Json::parse(R"([{"type": "function", "function": {"name": "f"}}])");
    made.extra = Json::parse(R"({"n": 7, "f": 2.5, "s": "Hello, World", "l": [3, 1, 2]})");
    made.clock = [] { return std::chrono::system_clock::time_point(); };
    return made;
  }();
  const std::string source(reinterpret_cast<const char*>(data), size);
  const auto parsed = ChatTemplate::parse(source, "<s>", "</s>");
  if (parsed) (void)(*parsed)->render(input);
  return 0;
}
