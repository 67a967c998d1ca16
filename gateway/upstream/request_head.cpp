#include "gateway/upstream/request_head.hpp"

#include "gateway/upstream/response_parser.hpp"

namespace fixpoint {
namespace {

// Fields that this client writes itself.
bool is_own(std::string_view name) {
  return is_hop_by_hop(name) || equal_ignoring_case(name, "Host") ||
         equal_ignoring_case(name, "Content-Length") || equal_ignoring_case(name, "Expect") ||
         equal_ignoring_case(name, "Accept-Encoding");
}

bool is_token(std::string_view text) {
  return !text.empty() && text.find_first_not_of(
                              "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                              "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == std::string_view::npos;
}

bool has_control(std::string_view text) {
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f) return true;
  }
  return false;
}

void add_field(std::string& head, std::string_view name, std::string_view value) {
  head += name;
  head += ": ";
  head += value;
  head += "\r\n";
}

}  // namespace

RequestTarget request_target(const Url& url, const Proxy* proxy) {
  RequestTarget target;
  target.host = url.authority();
  const bool absolute = proxy != nullptr && url.scheme == "http";
  if (absolute) {
    target.prefix = "http://" + target.host;
    target.proxy_authorization = proxy->authorization;
  }
  target.prefix += url.path;
  target.has_path = !url.path.empty();
  return target;
}

std::string connect_head(const Url& url, const Proxy& proxy) {
  // RFC 9110, 9.3.6: the target is always host and port.
  const std::string authority = host_and_port(url.host, url.port, 0);
  std::string head = "CONNECT " + authority + " HTTP/1.1\r\n";
  add_field(head, "Host", authority);
  if (!proxy.authorization.empty()) add_field(head, "Proxy-Authorization", proxy.authorization);
  return head + "\r\n";
}

Result<std::string> render_request_head(const UpstreamRequest& request,
                                        const RequestTarget& target) {
  if (!is_token(request.method)) return fail(ErrorCode::invalid, "the method is malformed");
  if (has_control(request.path) || request.path.find(' ') != std::string::npos) {
    return fail(ErrorCode::invalid, "the path has a byte that must be percent-encoded");
  }
  std::string head;
  head.reserve(1024);
  head += request.method;
  head += ' ';
  head += target.prefix;
  if (!target.has_path && !request.path.starts_with('/')) head += '/';
  head += request.path;
  head += " HTTP/1.1\r\n";
  add_field(head, "Host", target.host);
  if (!target.proxy_authorization.empty()) {
    add_field(head, "Proxy-Authorization", target.proxy_authorization);
  }
  for (const Header& header : request.headers) {
    if (is_own(header.name)) continue;
    if (!is_token(header.name) || has_control(header.value)) {
      return fail(ErrorCode::invalid, "header field \"" + header.name + "\" is malformed");
    }
    add_field(head, header.name, header.value);
  }
  // Answers are parsed, stored and replayed: compressed bytes would only have to be undone.
  head += "Accept-Encoding: identity\r\n";
  if (request.body || request.method == "POST") {
    add_field(head, "Content-Length", std::to_string(request.body ? request.body->size() : 0));
  }
  head += "\r\n";
  return head;
}

}  // namespace fixpoint
