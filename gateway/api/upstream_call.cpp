#include "gateway/api/upstream_call.hpp"

#include <utility>

#include "gateway/api/header_policy.hpp"
#include "gateway/api/plan.hpp"
#include "gateway/json_edit.hpp"
#include "gateway/json_guard.hpp"

namespace fixpoint {
namespace {

// Sets members of a body's text, or nothing when one of them cannot be set. The text is copied
// only when it changes: most requests go on as they came.
class Editor {
 public:
  explicit Editor(std::shared_ptr<const std::string> body) : body_(std::move(body)) {}
  void set(std::string_view name, std::string_view value) {
    if (error_) return;
    auto edited = set_member(*body_, name, value);
    if (edited) {
      body_ = std::make_shared<const std::string>(std::move(*edited));
    } else {
      error_ = bad_request(edited.error().message, std::string(name));
    }
  }
  // A member of a member that is an object, or absent.
  void set_inner(std::string_view outer, std::string_view name, std::string_view value) {
    if (error_) return;
    const auto given = find_member(*body_, outer);
    std::string object = given && *given && **given != "null" ? std::string(**given) : "{}";
    auto widened = set_member(object, name, value);
    if (!widened) {
      error_ = bad_request(widened.error().message, std::string(outer));
      return;
    }
    set(outer, *widened);
  }
  // The gateway's own directives among the client's labels stay here.
  void remove_directives() {
    const auto metadata = find_member(*body_, "metadata");
    if (!metadata || !*metadata) return;
    auto labels = parse_json(**metadata);
    if (!labels || !labels->is_object()) return;
    Json kept = Json::object();
    for (const auto& [name, value] : labels->items()) {
      if (!name.starts_with("fixpoint_")) kept[name] = value;
    }
    set("metadata", kept.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  const std::optional<ApiError>& error() const { return error_; }
  const std::shared_ptr<const std::string>& body() const { return body_; }

 private:
  std::shared_ptr<const std::string> body_;
  std::optional<ApiError> error_;
};

bool has_usage_option(Endpoint endpoint) {
  return endpoint == Endpoint::chat_completions || endpoint == Endpoint::completions;
}

bool has_logprobs(Endpoint endpoint) {
  return has_usage_option(endpoint) || endpoint == Endpoint::responses;
}

void ask_for_logprobs(Endpoint endpoint, std::uint64_t count, Editor& editor) {
  const auto number = std::to_string(count);
  if (endpoint == Endpoint::completions) {
    editor.set("logprobs", number);
    return;
  }
  editor.set("top_logprobs", number);
  if (endpoint == Endpoint::chat_completions) {
    editor.set("logprobs", "true");
    return;
  }
  const auto given = find_member(*editor.body(), "include");
  std::string include = given && *given ? std::string(**given) : "null";
  const bool empty = !include.starts_with('[') || include.find('"') == std::string::npos;
  constexpr const char* kWish = "[\"message.output_text.logprobs\"";
  include = empty ? std::string(kWish) + "]" : kWish + ("," + include.substr(1));
  editor.set("include", include);
}

}  // namespace

ApiResult<TranslationPtr> translate_for(Endpoint client, Endpoint maker, const std::string& body) {
  auto tree = parse_json(body);
  if (!tree) return refuse(bad_request("The request body " + tree.error().message));
  auto translated = translate_request(client, maker, *tree);
  if (!translated) return refuse(translation_error(translated.error()));
  return std::make_shared<const Translation>(Translation{std::move(*tree), std::move(*translated)});
}

ApiResult<UpstreamCall> build_upstream_call(const UpstreamWork& work, Upstream& upstream,
                                            bool inject_logprobs) {
  const auto& config = upstream.config;
  const auto endpoint = endpoint_at(config.kind, work.endpoint);
  if (!endpoint) {
    return refuse(bad_request("Upstream '" + config.name + "' has no endpoint for " +
                                  std::string(endpoint_name(work.endpoint)),
                              "model", "unsupported_endpoint"));
  }
  UpstreamCall call;
  call.endpoint = *endpoint;
  const auto& request = *work.request;
  std::shared_ptr<const std::string> body(work.request, &request.body);
  if (*endpoint != work.endpoint) {
    auto translation = work.translation;
    if (!translation) {
      auto made = translate_for(work.endpoint, *endpoint, *body);
      if (!made) return refuse(std::move(made.error()));
      translation = std::move(*made);
    }
    body = std::make_shared<const std::string>(
        translation->request.body.dump(-1, ' ', false, Json::error_handler_t::replace));
    call.dropped = translation->request.dropped;
    call.translator = make_translator(work.endpoint, *endpoint, translation->tree);
  }

  Editor editor(std::move(body));
  if (work.directives_in_metadata) editor.remove_directives();
  const auto name = upstream.model_name(work.model);
  if (name != work.model) editor.set("model", json_string(name));
  if (work.stream && config.ask_for_usage && has_usage_option(*endpoint) &&
      (!work.wants_usage || *endpoint != work.endpoint)) {
    editor.set_inner("stream_options", "include_usage", "true");
  }
  if (inject_logprobs && has_logprobs(*endpoint) && !work.wants_logprobs) {
    ask_for_logprobs(*endpoint, work.settings->config.log.top_logprobs, editor);
    call.strip_logprobs = true;
  }
  if (editor.error()) return refuse(*editor.error());

  call.request.path = endpoint_path(*endpoint);
  if (!request.query.empty()) call.request.path += "?" + request.query;
  if (upstream.keys) call.key = upstream.keys->next();
  call.request.headers = forwarded_headers(config, call.key ? call.key->text : nullptr,
                                           request.headers, work.tenant != nullptr);
  if (work.trace) {
    set_trace_headers(*work.trace, work.trace->span, call.request.headers);
  }
  call.request.body = editor.body();
  return call;
}

CacheKey key_at(const Gateway& gateway, const UpstreamWork& work, const Upstream& upstream) {
  const auto& request = *work.request;
  auto body = std::string_view(request.body);
  std::string renamed;
  const auto name = upstream.model_name(work.model);
  if (name != work.model) {
    renamed = set_member(body, "model", json_string(name)).value_or(request.body);
    body = renamed;
  }
  const auto scope = key_scope(gateway, *work.settings, upstream, work.endpoint, work.model,
                               work.tenant.get(), request.headers, request.query);
  BodyKeyInput input;
  input.tenant = scope.tenant;
  input.provider = upstream.config.name;
  input.base_url = upstream.config.base_url;
  input.endpoint = scope.endpoint;
  input.request = body;
  input.sample = work.sample;
  input.echoed = work.endpoint == Endpoint::responses;
  return body_key(input).value();
}

}  // namespace fixpoint
