#include "gateway/config.hpp"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <system_error>

#include "cache/redis/url.hpp"
#include "gateway/config_keys.hpp"
#include "gateway/upstream/client.hpp"

namespace fixpoint {
namespace {

template <class Item>
const Item* find_named(const std::vector<Item>& items, std::string_view name) {
  for (const Item& item : items) {
    if (item.name == name) return &item;
  }
  return nullptr;
}

// A base folder of the XDG specification: relative values are to be ignored, it says.
std::string xdg_folder(const Environment& environment, const char* variable,
                       std::string_view below_home) {
  const auto set = environment(variable);
  if (set && set->starts_with('/')) return *set;
  const auto home = environment("HOME");
  if (!home || home->empty()) return {};
  return *home + std::string(below_home);
}

}  // namespace

const ModelConfig* Config::find_model(std::string_view name) const {
  return find_named(models, name);
}

const UpstreamConfig* Config::find_upstream(std::string_view name) const {
  return find_named(upstreams, name);
}

std::vector<std::string> Config::secrets() const {
  std::vector<std::string> all;
  const auto add = [&](const std::string& value) {
    if (!value.empty()) all.push_back(value);
  };
  add(cache.redis_url);
  if (const auto url = redis::parse_url(cache.redis_url)) add(url->password);
  add(admin.token);
  for (const NamedValue& header : telemetry.headers) add(header.value);
  for (const UpstreamConfig& upstream : upstreams) {
    add(upstream.api_key);
    for (const std::string& key : upstream.api_keys) add(key);
    for (const NamedValue& header : upstream.headers) add(header.value);
    add(upstream.proxy);
    if (const auto proxy = parse_proxy(upstream.proxy)) add(proxy->authorization);
  }
  return all;
}

std::string ConfigError::text() const {
  std::string place = file;
  if (line > 0) {
    place.append(":").append(std::to_string(line)).append(":").append(std::to_string(column));
  }
  return place.empty() ? message : place + ": " + message;
}

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

ConfigResult load_config(const std::string& file, const ConfigOptions& options) {
  if (file.empty()) return parse_config("", "", options);
  std::ifstream in(file, std::ios::binary);
  std::string text;
  // One byte more than the limit, so that parse_config() sees that the file is too long.
  text.resize(config::kMaxFileBytes + 1);
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!in.is_open() || in.bad() || (in.fail() && !in.eof())) {
    const std::string reason = std::generic_category().message(errno);
    return tl::make_unexpected(
        std::vector<ConfigError>{{file, 0, 0, "the file cannot be read: " + reason}});
  }
  text.resize(static_cast<std::size_t>(in.gcount()));
  return parse_config(text, file, options);
}

std::optional<std::string> find_config_file(const Environment& environment) {
  const std::string local = "fixpoint.yaml";
  if (access(local.c_str(), F_OK) == 0) return local;
  const std::string folder = xdg_folder(environment, "XDG_CONFIG_HOME", "/.config");
  if (folder.empty()) return std::nullopt;
  const std::string file = folder + "/fixpoint/config.yaml";
  if (access(file.c_str(), F_OK) == 0) return file;
  return std::nullopt;
}

std::string default_data_dir(const Environment& environment) {
  const std::string folder = xdg_folder(environment, "XDG_DATA_HOME", "/.local/share");
  return folder.empty() ? folder : folder + "/fixpoint";
}

Result<ListenAddress> parse_listen(std::string_view text) {
  const auto bad = [&](std::string_view why) {
    return fail(ErrorCode::invalid,
                "must be an IP address and a port, such as 127.0.0.1:8080 or "
                "[::1]:8080: " +
                    std::string(why));
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad("the port is missing");
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  ListenAddress listen;
  const auto [end, code] =
      std::from_chars(digits.data(), digits.data() + digits.size(), listen.port);
  if (code != std::errc() || end != digits.data() + digits.size()) {
    return bad("the port must be a number in 0 .. 65535");
  }
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  listen.address = host == "localhost" && !bracketed ? "127.0.0.1" : std::string(host);
  in_addr v4{};
  in6_addr v6{};
  if (!bracketed && inet_pton(AF_INET, listen.address.c_str(), &v4) == 1) {
    listen.loopback = (ntohl(v4.s_addr) >> 24) == 127;
  } else if (bracketed && inet_pton(AF_INET6, listen.address.c_str(), &v6) == 1) {
    listen.loopback = IN6_IS_ADDR_LOOPBACK(&v6);
  } else {
    return bad("the address is not an IP address (IPv6 needs brackets)");
  }
  return listen;
}

bool glob_matches(std::string_view glob, std::string_view text) {
  // On a mismatch the last star takes one more byte; earlier stars never need to: linear in
  // practice, O(glob * text) at worst.
  std::size_t g = 0, t = 0, after_star = std::string_view::npos, star_text = 0;
  while (t < text.size()) {
    if (g < glob.size() && glob[g] == '*') {
      after_star = ++g;
      star_text = t;
    } else if (g < glob.size() && glob[g] == text[t]) {
      ++g, ++t;
    } else if (after_star != std::string_view::npos) {
      g = after_star;
      t = ++star_text;
    } else {
      return false;
    }
  }
  return glob.find_first_not_of('*', g) == std::string_view::npos;
}

}  // namespace fixpoint
