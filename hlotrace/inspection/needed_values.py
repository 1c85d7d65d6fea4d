"""Which values of an MLIR program its results and effects need, and how often its loops run."""
import numpy as np

from ..runtime.mlir.bindings import ir

HOLDERS = ("stablehlo.while", "stablehlo.case", "stablehlo.if", "sdy.manual_computation")


def owner(value):
    """The operation that gives a value, or in whose region it is an argument."""
    found = value.owner
    return operation(found.owner if isinstance(found, ir.Block) else found)


def operation(op):
    """An operation as ir.Operation, so that equal ones are equal."""
    return getattr(op, "operation", op)


def users(op):
    """The operations that take its results."""
    return [operation(use.owner) for result in op.results for use in result.uses]


def body(op, region=0):
    """The block of an operation that has one block a region."""
    return op.regions[region].blocks[0]


def callee(op, functions):
    """The function that a `func.call` calls."""
    return functions[ir.FlatSymbolRefAttr(op.attributes["callee"]).value]


def returned(block):
    """The operands of a block's last operation."""
    return list(block.operations[len(block.operations) - 1].operation.operands)


def has_effect(op):
    """Does an operation do something besides computing, such as a callback?"""
    return "has_side_effect" in op.attributes and ir.BoolAttr(op.attributes["has_side_effect"]).value


class Needed:
    """Which operations of a program run: those that its results or its effects need.

    `functions` are those of a module by their names, "main" among them.  What only values need that a loop
    carries along and nothing takes does not run.

    Attributes:
        values: those that are needed.
        calls: function -> its calls that run.
        arguments: function -> the numbers of the arguments that it needs.
    """

    def __init__(self, functions):
        self.functions = functions
        self.values, self.running, self.waiting = set(), set(), returned(body(functions["main"]))
        self.calls, self.arguments = {}, {}
        self.effects(body(functions["main"]))
        while self.waiting:
            value = self.waiting.pop()
            if value not in self.values:
                self.values.add(value)
                if isinstance(value, ir.BlockArgument):
                    self.argument(owner(value), value.arg_number)
                else:
                    self.result(owner(value), value.result_number)

    def runs(self, op):
        """Does an operation run?"""
        return op in self.running or any(value in self.values for value in op.results)

    def effects(self, block):
        """Mark what runs in any case: operations with side effects, and what holds them.  Are there any?"""
        found = False
        for op in map(operation, block.operations):
            holder = callee(op, self.functions) if op.name == "func.call" else op
            blocks = [region.blocks[0] for region in holder.regions]
            if any([self.effects(b) for b in blocks]) or has_effect(op):
                self.run(op)
                found = True
        return found

    def run(self, op):
        """Mark an operation, with the operands that it needs whichever of its results are needed."""
        if op in self.running:
            return
        self.running.add(op)
        if op.name == "stablehlo.while":
            self.waiting += returned(body(op))
        elif op.name == "func.call":
            function = callee(op, self.functions)
            self.calls.setdefault(function, []).append(op)
            self.waiting += [op.operands[i] for i in self.arguments.get(function, ())]
        elif op.name not in HOLDERS:
            self.waiting += op.operands
        elif op.name != "sdy.manual_computation":
            self.waiting.append(op.operands[0])

    def result(self, op, number):
        """A result is needed: so is what gives it in the operation's regions."""
        self.run(op)
        if op.name == "stablehlo.while":
            self.argument(op, number)
        elif op.name in HOLDERS:
            self.waiting += [returned(region.blocks[0])[number] for region in op.regions]
        elif op.name == "func.call":
            self.waiting.append(returned(body(callee(op, self.functions)))[number])

    def argument(self, op, number):
        """An argument of an operation's region is needed: so is the operand that it is."""
        if op.name == "func.func":
            self.arguments.setdefault(op, set()).add(number)
            self.waiting += [call.operands[number] for call in self.calls.get(op, ())]
        else:
            self.waiting.append(op.operands[number])
        if op.name == "stablehlo.while":
            self.values.add(op.results[number])
            self.waiting.append(returned(body(op, 1))[number])


def trip_count(op):
    """How often a while loop runs that counts up to a constant; None for another one."""
    [goes_on] = returned(body(op))
    test = owner(goes_on)
    if test.name != "stablehlo.compare" or "LT" not in str(test.attributes["comparison_direction"]):
        return None
    counter, limit = test.operands
    if not isinstance(counter, ir.BlockArgument):
        return None
    number = counter.arg_number
    step = owner(returned(body(op, 1))[number])
    by = [_constant(value) for value in step.operands if value != body(op, 1).arguments[number]]
    first, last = _constant(op.operands[number]), _constant(limit)
    if step.name != "stablehlo.add" or len(by) != 1 or None in (first, last, *by) or by[0] <= 0:
        return None
    return max(0, -(-(last - first) // by[0]))


def _constant(value):
    op = owner(value)
    if op.name not in ("stablehlo.constant", "sdy.constant"):
        return None
    return int(np.array(op.attributes["value"]).flat[0])
