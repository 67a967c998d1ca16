// Units of the limits in the tables of keys. Internal to the configuration.
#pragma once

#include <cstdint>

namespace fixpoint::config {

constexpr std::uint64_t kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;
constexpr std::uint64_t kSecond = 1000, kHour = 3600 * kSecond, kDay = 24 * kHour;
constexpr std::uint64_t kTenYears = 3650 * kDay;
constexpr std::uint64_t kTextMax = 4096;  // bytes; paths (PATH_MAX), URLs and keys are shorter
constexpr std::uint64_t kNameMax = 128;   // bytes

}  // namespace fixpoint::config
