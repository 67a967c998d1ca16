// The scalar elementary functions: one lane of the vector ones.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/math.cpp"
#include "kernels/cpu/targets.hpp"
// Highway's order: this header includes the file once per target.
#include <hwy/foreach_target.h>

#include "kernels/cpu.hpp"
#include "kernels/cpu/math-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace fixpoint::kernels::HWY_NAMESPACE {

float exp_one(float x) {
  const One d;
  return hn::GetLane(exp_v(d, hn::Set(d, x)));
}

float log_one(float x) {
  const One d;
  return hn::GetLane(log_v(d, hn::Set(d, x)));
}

float sin_one(float x) {
  const One d;
  auto s = hn::Zero(d), c = hn::Zero(d);
  sin_cos_v(d, hn::Set(d, x), s, c);
  return hn::GetLane(s);
}

float cos_one(float x) {
  const One d;
  auto s = hn::Zero(d), c = hn::Zero(d);
  sin_cos_v(d, hn::Set(d, x), s, c);
  return hn::GetLane(c);
}

}  // namespace fixpoint::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fixpoint::kernels {

HWY_EXPORT(exp_one);
HWY_EXPORT(log_one);
HWY_EXPORT(sin_one);
HWY_EXPORT(cos_one);

float exp_f32(float x) {
  return HWY_DYNAMIC_DISPATCH(exp_one)(x);
}
float log_f32(float x) {
  return HWY_DYNAMIC_DISPATCH(log_one)(x);
}
float sin_f32(float x) {
  return HWY_DYNAMIC_DISPATCH(sin_one)(x);
}
float cos_f32(float x) {
  return HWY_DYNAMIC_DISPATCH(cos_one)(x);
}

}  // namespace fixpoint::kernels
#endif
