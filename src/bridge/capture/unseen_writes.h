// Writes to a tensor with a history of which autograd knows nothing: in no_grad mode, to x.data, to the memory of x as
// integers. The history stays that of the contents before the write.
#pragma once

#include "bridge/capture/autograd_notes.h"

namespace cresset::bridge {

// Notes that the current operator replaces the contents `before` by `contents`.
void note_unseen_write(AutogradNotes& notes, graph::ValueId before, graph::ValueId contents);

}  // namespace cresset::bridge
