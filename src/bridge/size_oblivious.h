// Composite operators of ATen that ask "is this size 0, is it 1?" only to leave early or to choose among algorithms.
#pragma once

namespace cresset::bridge {

// While one lives, such a question about a size that data gives has the answer of a general size, instead of ending the
// piece; the program checks it when it runs, and a call where it is otherwise runs eagerly. Only for operators whose
// results have the same shapes either way: what a capture has told Python cannot be taken back.
class SizeOblivious {
 public:
  SizeOblivious() { ++depth(); }
  ~SizeOblivious() { --depth(); }
  SizeOblivious(const SizeOblivious&) = delete;
  SizeOblivious& operator=(const SizeOblivious&) = delete;

  static bool active() { return depth() != 0; }

 private:
  static int& depth() {
    thread_local int depth = 0;
    return depth;
  }
};

}  // namespace cresset::bridge
