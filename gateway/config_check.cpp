// Checks between the keys of a configuration that its table of keys cannot express.
#include <algorithm>
#include <set>

#include "gateway/config_keys.hpp"
#include "gateway/upstream/client.hpp"

namespace fixpoint::config {
namespace {

std::string in_quotes(std::string_view text) {
  return '"' + std::string(text) + '"';
}

std::string item_path(std::string_view list, std::size_t i) {
  return std::string(list) + "[" + std::to_string(i) + "]";
}

template <class Item>
void check_unique_names(const std::vector<Item>& items, std::string_view list,
                        const Report& report) {
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!items[i].name.empty() && !seen.insert(items[i].name).second) {
      report(item_path(list, i) + ".name", in_quotes(items[i].name) + " is already used in " +
                                               std::string(list) + ": names must be unique");
    }
  }
}

void check_server(const ServerConfig& server, const Report& report) {
  const auto listen = parse_listen(server.listen);
  if (!listen) {
    report("server.listen", listen.error().message);
  } else if (!listen->loopback && !server.allow_public) {
    report("server.listen",
           in_quotes(server.listen) +
               " is reachable from other machines and there is no authentication: listen on a "
               "loopback address, or set server.allow_public: true");
  }
}

// Characters of an HTTP field name (RFC 9110, 5.6.2).
bool is_token(std::string_view text) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           kMarks.find(c) != std::string_view::npos;
  });
}

// Fields that belong to the connection: the gateway's HTTP client writes them itself.
bool is_reserved(std::string_view name) {
  constexpr std::string_view kReserved[] = {
      "host",    "connection", "content-length", "transfer-encoding", "te", "trailer",
      "upgrade", "keep-alive", "expect",         "accept-encoding"};
  return std::any_of(std::begin(kReserved), std::end(kReserved),
                     [&](std::string_view field) { return equal_ignoring_case(field, name); });
}

void check_upstream(const UpstreamConfig& upstream, const std::string& path, const Report& report) {
  if (!upstream.base_url.empty()) {
    if (auto url = parse_url(upstream.base_url); !url) {
      report(path + ".base_url", "must be an http or https URL without user, query or fragment");
    }
  }
  for (std::size_t i = 0; i < upstream.headers.size(); ++i) {
    const std::string& name = upstream.headers[i].name;
    const std::string place = path + ".headers." + name;
    if (!is_token(name)) {
      report(place, "is not an HTTP field name");
    } else if (is_reserved(name)) {
      report(place, "is written by the gateway and cannot be set");
    } else if (!upstream.api_key.empty() && equal_ignoring_case(name, "authorization")) {
      report(place, "cannot be set together with api_key");
    }
    const auto same = [&](const NamedValue& other) {
      return equal_ignoring_case(other.name, name);
    };
    const auto end = upstream.headers.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::any_of(upstream.headers.begin(), end, same)) {
      report(place, "is set twice (field names do not differ by case)");
    }
  }
}

void check_route(const Config& config, std::size_t i, const Report& report) {
  const RouteConfig& route = config.routes[i];
  const std::string path = item_path("routes", i);
  if (route.upstream.empty() == route.local.empty()) {
    report(path, "exactly one of upstream and local must be set");
  }
  const auto check_model = [&](const std::string& name, std::string_view key) {
    if (!name.empty() && config.find_model(name) == nullptr) {
      report(path + "." + std::string(key), in_quotes(name) + " is no name in models");
    }
  };
  check_model(route.local, "local");
  check_model(route.repro_model, "repro_model");
  if (!route.upstream.empty() && config.find_upstream(route.upstream) == nullptr) {
    report(path + ".upstream", in_quotes(route.upstream) + " is no name in upstreams");
  }
  if (!route.upstream_model.empty() && route.upstream.empty()) {
    report(path + ".upstream_model", "has no effect without upstream");
  }
  if (route.repro != ReproMode::off && route.local.empty() && route.repro_model.empty()) {
    report(path + ".repro", in_quotes(to_string(route.repro)) +
                                " needs a local model: set repro_model to a name in models");
  }
  for (std::size_t earlier = 0; earlier < i; ++earlier) {
    const std::string& glob = config.routes[earlier].model;
    if (!route.model.empty() && (glob == "*" || glob == route.model)) {
      report(path, "can never match: " + item_path("routes", earlier) + " (" + in_quotes(glob) +
                       ") takes every such request before it");
      break;
    }
  }
}

}  // namespace

void cross_check(const Config& config, const Report& report) {
  check_server(config.server, report);
  check_unique_names(config.models, "models", report);
  check_unique_names(config.upstreams, "upstreams", report);
  for (std::size_t i = 0; i < config.upstreams.size(); ++i) {
    check_upstream(config.upstreams[i], item_path("upstreams", i), report);
  }
  for (std::size_t i = 0; i < config.routes.size(); ++i) check_route(config, i, report);
  if (config.cache.enabled && config.log.enabled && config.cache.path == config.log.path) {
    report("log.path", "must not be the file of cache.path");
  }
}

}  // namespace fixpoint::config
