// Recognizes a digit by the bundled network, from Rust: see docs/packages.md, "In other languages".

mod vdla;

const IMAGE: &str = "\
    ..####..\
    .++++##.\
    .....##.\
    ..++##+.\
    .######.\
    ...##...\
    ..##....\
    ..##....";

fn main() -> Result<(), vdla::Error> {
    let pixels: Vec<f32> = IMAGE.chars().map(|c| match c { '#' => 1.0, '+' => 0.5, _ => 0.0 }).collect();
    let mut net = vdla::open!(digits_open)?;
    net.write("image", &pixels)?;
    net.run()?;
    let scores = net.output::<f32>("logits")?;
    let best = (0..10).max_by(|&a, &b| scores[a].total_cmp(&scores[b]));
    println!("digit {}", best.unwrap());
    for score in scores {
        println!("{score}");
    }
    Ok(())
}
