// Small helpers for what verbs print. Internal to gateway/cli.
#pragma once

#include <nlohmann/json.hpp>
#include <ostream>

#include "gateway/cli/verbs.hpp"

namespace fixpoint::cli {

using Json = nlohmann::ordered_json;

// Two spaces of indent; bytes that are not UTF-8 become U+FFFD.
inline void write_json(const Session& session, const Json& json) {
  session.context.out << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

// The exit code for an error that is not the command line's fault, whatever its kind.
inline int report_failure(const Session& session, const Error& error) {
  const int code = report(session, error);
  return code == kExitUsage ? kExitFailed : code;
}

}  // namespace fixpoint::cli
