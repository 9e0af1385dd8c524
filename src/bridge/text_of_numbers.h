// Numbers that are written out are pinned by that; their guards say so.
#pragma once

namespace cresset::bridge {

// While one exists on the thread, guards are asked for by sym::kTextOfNumber.
class MakingText {
 public:
  MakingText();
  ~MakingText();
  MakingText(const MakingText&) = delete;

 private:
  bool before_;
};

}  // namespace cresset::bridge
