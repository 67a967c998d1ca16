// How answers travel: framing of events, delays, cuts, errors.
#include <algorithm>

#include "tests/support/mock_api.hpp"

namespace fixpoint::test {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

std::string written(const MockBehaviour& how, const MockEvent& event) {
  const std::string end = how.has("crlf") ? "\r\n" : how.has("cr") ? "\r" : "\n";
  const std::string colon = how.has("nospace") ? ":" : ": ";
  std::string data = event.data;
  if (how.has("multiline")) {
    const json parsed = json::parse(data, nullptr, false);
    if (!parsed.is_discarded()) data = parsed.dump(1);
  }
  std::string text;
  if (!event.name.empty()) text += "event" + colon + event.name + end;
  for (std::size_t start = 0; start <= data.size();) {
    const std::size_t stop = std::min(data.find('\n', start), data.size());
    text += "data" + colon + data.substr(start, stop - start) + end;
    start = stop + 1;
  }
  return text + end;
}

const char* anthropic_type(int status) {
  switch (status) {
    case 400:
      return "invalid_request_error";
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 529:
      return "overloaded_error";
    default:
      return "api_error";
  }
}

const char* openai_type(int status) {
  return status == 429  ? "rate_limit_error"
         : status < 500 ? "invalid_request_error"
                        : "server_error";
}

}  // namespace

MockAnswer mock_stream(const MockCall& call, std::vector<MockEvent> events, const MockEvent& error,
                       const std::vector<MockEvent>& end) {
  const MockBehaviour& how = call.how;
  if (how.has("errorevent")) {
    events.resize(std::min(events.size(), how.number("errorevent", 0, 3)));
    events.push_back(error);
    if (how.has("done")) events.insert(events.end(), end.begin(), end.end());
  } else if (!how.has("nodone")) {
    events.insert(events.end(), end.begin(), end.end());
  }
  MockAnswer answer;
  answer.streamed = true;
  answer.content_type = "text/event-stream";
  const bool anthropic = !events.empty() && events.front().name == "message_start";
  const std::string blank = how.has("crlf") ? "\r\n" : how.has("cr") ? "\r" : "\n";
  for (const MockEvent& event : events) {
    std::string piece = written(how, event);
    if (how.has("blank"))
      piece = blank + ": nothing" + blank + blank + "event: ping" + blank + blank + piece;
    if (how.has("emptydata") && &event != &events.front()) piece = "data:" + blank + blank + piece;
    if (how.has("ping") && &event != &events.front()) {
      answer.pieces.push_back(anthropic ? written(how, {"ping", R"({"type":"ping"})"})
                                        : ": ping" + blank + blank);
    }
    answer.pieces.push_back(std::move(piece));
  }
  if (how.has("bom") && !answer.pieces.empty()) answer.pieces[0].insert(0, "\xEF\xBB\xBF");
  if (how.has("stream")) answer.between = milliseconds(how.number("stream", 1));
  if (how.has("ping")) answer.between = milliseconds(how.number("ping", 0, 50));
  answer.hold = milliseconds(how.number("idle"));
  apply_behaviour(call, answer);
  return answer;
}

void apply_behaviour(const MockCall& call, MockAnswer& answer) {
  const MockBehaviour& how = call.how;
  if (how.has("slow")) answer.delay = milliseconds(2000);
  if (how.has("delay")) answer.delay = milliseconds(how.number("delay"));
  for (const char* word : {"cut", "end", "resetat"}) {
    if (how.has(word)) answer.cut = how.number(word);
  }
  answer.whole = how.has("end");
  answer.reset_cut = how.has("resetat");
  answer.reset = how.has("reset");
  answer.split = how.has("split");
}

MockAnswer mock_error(MockApi api, int status, const std::string& message,
                      const std::string& code) {
  MockAnswer answer;
  answer.status = status;
  json body;
  if (api == MockApi::anthropic) {
    body = {{"type", "error"},
            {"error", {{"type", anthropic_type(status)}, {"message", message}}},
            {"request_id", "req_mock_error"}};
    answer.headers.emplace_back("request-id", "req_mock_error");
  } else {
    body = {{"error",
             {{"message", message},
              {"type", openai_type(status)},
              {"param", nullptr},
              {"code", code}}}};
    answer.headers.emplace_back("x-request-id", "req_mock_error");
  }
  answer.pieces = {body.dump()};
  return answer;
}

}  // namespace fixpoint::test
