// Log-probabilities that the gateway asked for and the client did not.
#pragma once

#include <string>
#include <string_view>

namespace fixpoint {

// The text of an answer, or of an event of a stream, with them as they are where nobody asks: null
// in a choice, an empty array in Responses' texts and events. Only in the places that the APIs give
// them: tools and metadata may have members of that name. All else stays as it is spelled, and so
// does what is no JSON.
std::string without_logprobs(std::string_view text);

}  // namespace fixpoint
