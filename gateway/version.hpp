// The version of the program; equal to the project's in CMakeLists.txt (a test compares them).
#pragma once

#include <string_view>

namespace fixpoint {

inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace fixpoint
