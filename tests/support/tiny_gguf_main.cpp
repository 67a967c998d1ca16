// fixpoint-tiny-gguf FILE: writes the tests' small random model, for integration tests in Python.
#include <exception>
#include <iostream>

#include "tests/support/tiny_gguf.hpp"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: fixpoint-tiny-gguf FILE\nWrites a small random model in GGUF to FILE.\n";
    return 2;
  }
  try {
    fixpoint::test::write_tiny_gguf(argv[1]);
  } catch (const std::exception& error) {
    std::cerr << "fixpoint-tiny-gguf: " << error.what() << '\n';
    return 1;
  }
}
