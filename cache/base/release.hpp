// Gives a container's memory back.
#pragma once

namespace fixpoint {

// Assigning an empty one may keep it: libstdc++ copies a short string into the memory that is
// there, and `= {}` is an assignment of no elements.
template <class Container>
void release(Container& container) {
  Container().swap(container);
}

}  // namespace fixpoint
