// Makes an answer with the local engine.
#pragma once

#include <memory>

#include "gateway/api/job.hpp"
#include "gateway/api/local_request.hpp"

namespace fixpoint {

// Submits the choices to the engine and returns at once; events come from the engine's thread. When
// nobody waits for the answer any more, the generation is cancelled. `engine` outlives the answer.
// `endpoint`: chat_completions or completions, the form that the answer is made in.
void start_local_answer(engine::Engine& engine, Endpoint endpoint, LocalRequest request,
                        std::shared_ptr<AnswerJob> job);

}  // namespace fixpoint
