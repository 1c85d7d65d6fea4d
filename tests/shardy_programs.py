"""Texts of programs with shardings, for 8 devices."""

HEAD = """module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["data"=4, "model"=2]>
"""
MLP = (
    HEAD
    + """
  func.func public @main(
      %x: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>} loc("x"),
      %w1: tensor<8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>},
      %w2: tensor<32x8xf32>) -> (tensor<16x8xf32>, tensor<f32>) {
    %h = stablehlo.dot_general %x, %w1, contracting_dims = [1] x [0]
      : (tensor<16x8xf32>, tensor<8x32xf32>) -> tensor<16x32xf32>
    %t = stablehlo.tanh %h : tensor<16x32xf32>
    %y = stablehlo.dot_general %t, %w2, contracting_dims = [1] x [0]
      : (tensor<16x32xf32>, tensor<32x8xf32>) -> tensor<16x8xf32> loc(#dot)
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %s = stablehlo.reduce(%y init: %z) applies stablehlo.add across dimensions = [0, 1]
      : (tensor<16x8xf32>, tensor<f32>) -> tensor<f32> loc(#sum)
    return %y, %s : tensor<16x8xf32>, tensor<f32>
  }
}
#line = loc("/home/me/net.py":13:8)
#dot = loc("jit(f)/layer2/dot_general"(#line))
#line2 = loc("/home/me/n\\C3\\A9t.py":15:8)
#sum = loc("jit(f)/reduce_sum"(#line2))
"""
)
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
ADD = """({^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>})"""
MANUAL = f"""{HEAD}
  func.func public @main(%arg0: tensor<16x16xf32>) -> (tensor<16x8xf32>, tensor<16x16xf32>) {{
    %0:2 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{{"data"}}, {{"model"}}]>]
        out_shardings=[<@mesh, [{{"data"}}, {{}}]>, <@mesh, [{{"data"}}, {{"model"}}]>]
        manual_axes={{"data", "model"}} (%x: tensor<4x8xf32>) {{
      %r = "stablehlo.all_reduce"(%x) <{{{CHANNEL}, use_global_device_ids,
        replica_groups = dense<[[0,1],[2,3],[4,5],[6,7]]> : tensor<4x2xi64>}}> {ADD}
        : (tensor<4x8xf32>) -> tensor<4x8xf32>
      %i0 = stablehlo.constant dense<0> : tensor<i32>
      %w:2 = stablehlo.while(%i = %i0, %c = %x) : tensor<i32>, tensor<4x8xf32>
        cond {{
          %n = stablehlo.constant dense<5> : tensor<i32>
          %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %p : tensor<i1>
        }} do {{
          %one = stablehlo.constant dense<1> : tensor<i32>
          %i1 = stablehlo.add %i, %one : tensor<i32>
          %c1 = stablehlo.sine %c : tensor<4x8xf32>
          %c2 = "stablehlo.collective_permute"(%c1) <{{{CHANNEL},
            source_target_pairs = dense<[[0,2],[2,4],[4,6],[6,0]]> : tensor<4x2xi64>}}>
            : (tensor<4x8xf32>) -> tensor<4x8xf32>
          stablehlo.return %i1, %c2 : tensor<i32>, tensor<4x8xf32>
        }}
      sdy.return %r, %w#1 : tensor<4x8xf32>, tensor<4x8xf32>
    }} : (tensor<16x16xf32>) -> (tensor<16x8xf32>, tensor<16x16xf32>)
    return %0#0, %0#1 : tensor<16x8xf32>, tensor<16x16xf32>
  }}
}}
"""
