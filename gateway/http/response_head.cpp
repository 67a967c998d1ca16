#include "gateway/http/response_head.hpp"

#include <algorithm>
#include <array>
#include <boost/beast/http/status.hpp>
#include <charconv>
#include <stdexcept>

namespace fixpoint {
namespace {

void append_number(std::string& out, std::size_t value) {
  std::array<char, 20> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  out.append(digits.data(), end.ptr);
}

void append_status_line(std::string& out, int status) {
  // The heads of nearly every answer.
  if (status == 200) {
    out += "HTTP/1.1 200 OK\r\nServer: fixpoint\r\n";
    return;
  }
  out += "HTTP/1.1 ";
  append_number(out, static_cast<std::size_t>(status));
  out += ' ';
  out += reason_phrase(status);
  out += "\r\nServer: fixpoint\r\n";
}

bool is_framing(std::string_view name) {
  switch (name.size()) {
    case 4:
      return equal_ignoring_case(name, "Date");
    case 6:
      return equal_ignoring_case(name, "Server");
    case 10:
      return equal_ignoring_case(name, "Connection") || equal_ignoring_case(name, "Keep-Alive");
    case 14:
      return equal_ignoring_case(name, "Content-Length");
    case 17:
      return equal_ignoring_case(name, "Transfer-Encoding");
    default:
      return false;
  }
}

void check(const std::string& name, const std::string& value) {
  // Plain loops: find_first_of() makes a call for every byte of every field.
  const auto ends_a_field = [](char c) { return c == '\r' || c == '\n' || c == '\0'; };
  const auto ends_a_name = [&](char c) { return ends_a_field(c) || c == ' ' || c == ':'; };
  if (name.empty() || std::any_of(name.begin(), name.end(), ends_a_name) ||
      std::any_of(value.begin(), value.end(), ends_a_field)) {
    throw std::invalid_argument("a response header field is malformed: " + name);
  }
}

}  // namespace

std::string_view DateLine::get() {
  const std::time_t now = std::time(nullptr);
  if (now != second_) {
    second_ = now;
    std::tm parts{};
    gmtime_r(&now, &parts);
    std::array<char, 64> text;
    // strftime follows the C locale, which the program never changes.
    const std::size_t size =
        std::strftime(text.data(), text.size(), "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &parts);
    line_.assign(text.data(), size);
  }
  return line_;
}

std::string_view reason_phrase(int status) {
  const auto text = boost::beast::http::obsolete_reason(
      boost::beast::http::int_to_status(static_cast<unsigned>(status)));
  if (text == "<unknown-status>") return {};
  return {text.data(), text.size()};
}

void render_head(std::string& out, const Response& response, const HeadOptions& options,
                 DateLine& date) {
  out.clear();
  append_status_line(out, response.status);
  out += date.get();
  if (!response.content_type.empty() && options.framing != Framing::none) {
    check("Content-Type", response.content_type);
    out += "Content-Type: ";
    out += response.content_type;
    out += "\r\n";
  }
  if (options.framing == Framing::length) {
    out += "Content-Length: ";
    append_number(out, options.length);
    out += "\r\n";
  } else if (options.framing == Framing::chunked) {
    out += "Transfer-Encoding: chunked\r\n";
  }
  if (options.close) {
    out += "Connection: close\r\n";
  } else if (options.http_1_0) {
    out += "Connection: keep-alive\r\n";
  }
  for (const Header& header : response.headers) {
    if (is_framing(header.name)) continue;
    check(header.name, header.value);
    out += header.name;
    out += ": ";
    out += header.value;
    out += "\r\n";
  }
  out += "\r\n";
}

}  // namespace fixpoint
