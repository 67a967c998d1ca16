// Which instruction sets the kernels are compiled for. Include before any Highway header.
//
// Left out: SSSE3 (its CPUs take the scalar target) and the vector-length-agnostic sets SVE and
// RVV, whose vectors cannot be array elements; Arm CPUs with SVE take NEON.
#pragma once

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)

#include <bit>

static_assert(std::endian::native == std::endian::little, "packed weights are little endian");
