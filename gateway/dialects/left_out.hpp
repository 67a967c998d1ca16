// What of an answer has no place in another API's.
#pragma once

#include <string>
#include <vector>

#include "gateway/dialects/answer_form.hpp"

namespace fixpoint {

// The members of a whole answer of the other API that its translation leaves out, as
// x-fixpoint-dropped names them: "choices[].message.annotations", each once. What would be missed
// more fails to translate.
std::vector<std::string> left_out_members(Endpoint maker, const Json& answer);

}  // namespace fixpoint
