//! A picture in pixels, from its SVG.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Options, Tree};

/// Pixels for each unit of the picture.
const SCALE: f32 = 2.0;

/// The picture as PNG. Its words need a font of this machine; the reason, if there is none.
pub fn png(svg: &str) -> Result<Vec<u8>, String> {
    let mut options = Options::default();
    options.fontdb_mut().load_system_fonts();
    let family = sans(&options.fontdb).ok_or("this machine has no font for the words of a PNG")?;
    options.fontdb_mut().set_sans_serif_family(family);
    let tree = Tree::from_str(svg, &options).map_err(|e| e.to_string())?;
    let pixels = |units: f32| (units * SCALE).ceil() as u32;
    let (width, height) = (pixels(tree.size().width()), pixels(tree.size().height()));
    let mut picture = Pixmap::new(width, height).ok_or("a picture of no size")?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut picture.as_mut());
    picture.encode_png().map_err(|e| e.to_string())
}

/// A plain family, if there is any: the first without serifs, else the first.
fn sans(fonts: &Database) -> Option<String> {
    let mut names: Vec<&String> = fonts.faces().filter_map(|face| Some(&face.families.first()?.0)).collect();
    names.sort_by_key(|name| (!name.contains("Sans"), name.len(), name.as_str()));
    names.first().map(ToString::to_string)
}
