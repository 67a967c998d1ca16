// Log-probabilities that the gateway asked for and the client did not.
#pragma once

#include "gateway/dialects/answer_form.hpp"

namespace fixpoint {

// Makes them in an answer, or in an event of a stream, what they are where nobody asks: null in a
// choice, an empty array in Responses' texts and events. Only in the places that the APIs give
// them: tools and metadata may have members of that name.
void take_out_logprobs(Json& value);

}  // namespace fixpoint
