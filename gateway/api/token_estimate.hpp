// How many tokens a request takes, where nobody has counted them (yet).
#pragma once

#include <cstdint>
#include <string_view>

#include "gateway/api/client_request.hpp"
#include "gateway/tenants/price_table.hpp"

namespace fixpoint {

// What a token of English has.
constexpr std::uint64_t kBytesPerToken = 4;

// Of a request's body, in any API: a token for four bytes, but a flat number for each image, audio
// clip and file, whose bytes no model counts as text. One pass without a tree. Precondition: the
// body is JSON that read_request() took.
std::uint64_t estimate_prompt_tokens(std::string_view body);

// What the answer to a request is expected to take before it is made. The completion is as long as
// the request allows, but not longer than answers are, for each of those that it wants.
TokenCounts expected_tokens(const ClientRequest& request, std::string_view body);

}  // namespace fixpoint
