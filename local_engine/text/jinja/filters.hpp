// The filters are spread over two files; this is what they share.
#pragma once

#include <string_view>

#include "local_engine/text/jinja/runtime.hpp"

namespace fixpoint::engine::jinja {

// The filters of sequence_filters.cpp; null for another name.
Filter find_sequence_filter(std::string_view name);

}  // namespace fixpoint::engine::jinja
