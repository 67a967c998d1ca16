// What a request says to the gateway itself, in headers and metadata: caching, sample,
// reproducibility.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "gateway/api/errors.hpp"
#include "gateway/config.hpp"
#include "gateway/http/types.hpp"

namespace fixpoint {

// Cache-Control request directives (RFC 9111, section 5.2.1) that the gateway honours.
struct CacheDirectives {
  bool no_store = false;        // neither looked up nor stored
  bool no_cache = false;        // not looked up, but stored
  bool only_if_cached = false;  // a miss is 504
  std::optional<std::int64_t> max_age_s;
};

struct Directives {
  CacheDirectives cache;
  std::optional<std::uint32_t> sample;  // x-fixpoint-sample
  std::optional<ReproMode> repro;       // x-fixpoint-repro, or metadata.fixpoint_repro
  bool in_metadata = false;             // which may have the latter
};

// `metadata`: the request's member as it is spelled, or empty. Errors: 400 that names the header
// and its legal values.
ApiResult<Directives> parse_directives(const Headers& headers, std::string_view metadata);

}  // namespace fixpoint
