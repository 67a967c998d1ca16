# Flags that hold for every target.
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

# mold links the large Asio objects several times faster than ld; the result is the same program.
find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# The numerics contract (cpu-v1) writes every fused multiply-add out by name. A compiler that
# contracts a*b+c on its own would change bits between compilers, so it may not.
add_compile_options(-ffp-contract=off)

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 sees overlapping copies in `literal + std::string` that are not there (GCC bug 105651).
  add_compile_options(-Wno-restrict)
endif()
if(FIXPOINT_WERROR)
  add_compile_options(-Werror)
endif()

if(FIXPOINT_SANITIZE)
  add_compile_options(-fsanitize=${FIXPOINT_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${FIXPOINT_SANITIZE})
  if(FIXPOINT_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
    add_compile_definitions(FIXPOINT_UBSAN)  # for the one test that cannot run under it
    # clang 14 cannot emit this check's data for coroutines ("difference across sections").
    if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
      add_compile_options(-fno-sanitize=function)
    endif()
  endif()
endif()
