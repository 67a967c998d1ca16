// The table of all keys for README.md.
#include "gateway/config_keys.hpp"

namespace fixpoint {
namespace {

using config::Key;
using config::keys;
using config::Slot;

std::string_view or_dash(std::string_view text) {
  return text.empty() ? "-" : text;
}

template <class Section>
void append_rows(std::string& out, std::string_view prefix) {
  const Section defaults;
  for (const Key<Section>& key : keys<Section>()) {
    Section copy = defaults;
    const Slot slot = key.slot(copy);
    std::string standard(key.info.default_text);
    if (key.info.required) {
      standard = "required";
    } else if (standard.empty()) {
      const std::string value = config::value_text(key.info, slot);
      standard = value.empty() ? "empty" : "`" + value + "`";
    }
    out.append("| `").append(prefix).append(key.info.name).append("` | ");
    out.append(config::to_string(key.info.type)).append(" | ").append(standard).append(" | ");
    out.append(or_dash(config::limits_text(key.info, slot))).append(" | ");
    out.append(key.at_start ? "restart" : "SIGHUP").append(" | ");
    out.append(key.info.doc).append(" |\n");
  }
}

}  // namespace

std::string config_keys_markdown() {
  std::string out =
      "| Key | Type | Default | Limits | A change needs | Meaning |\n|---|---|---|---|---|---|\n";
  append_rows<Config>(out, "");
  append_rows<ServerConfig>(out, "server.");
  append_rows<CacheConfig>(out, "cache.");
  append_rows<TokenLogConfig>(out, "log.");
  append_rows<AccessLogConfig>(out, "access_log.");
  append_rows<AdminConfig>(out, "admin.");
  append_rows<TelemetryConfig>(out, "telemetry.");
  append_rows<PriceConfig>(out, "prices[].");
  append_rows<ModelConfig>(out, "models[].");
  append_rows<UpstreamConfig>(out, "upstreams[].");
  append_rows<RouteConfig>(out, "routes[].");
  return out;
}

}  // namespace fixpoint
