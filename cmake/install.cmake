# cmake --install BUILD [--prefix DIR]: engines, generator, man page, a completion of each engine, and the systemd unit, which starts the
# first engine. Man page and completions are what an engine says of itself.
include(GNUInstallDirs)
set(SF_INSTALLED "")
foreach(engine ${SF_ENGINES})
  sf_engine_target(target ${engine})
  list(APPEND SF_INSTALLED ${target})
endforeach()
install(TARGETS ${SF_INSTALLED} steadfast-gen RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

# What the engine prints for the flag becomes folder/name.
function(sf_install_output target flag folder name)
  set(made ${CMAKE_BINARY_DIR}/install-${flag}/${name})
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/install-${flag})
  install(CODE "execute_process(COMMAND \"$<TARGET_FILE:${target}>\" --${flag} OUTPUT_FILE \"${made}\" COMMAND_ERROR_IS_FATAL ANY)")
  install(FILES ${made} DESTINATION ${folder})
endfunction()

if(SF_INSTALLED)
  foreach(target ${SF_INSTALLED}) # bash-completion looks for a file by the command's name
    sf_install_output(${target} completion ${CMAKE_INSTALL_DATADIR}/bash-completion/completions ${target})
  endforeach()
  list(GET SF_INSTALLED 0 first)
  sf_install_output(${first} man ${CMAKE_INSTALL_MANDIR}/man1 steadfast.1)
  # The prefix may be another one at every install.
  install(CODE "
    get_filename_component(SF_PREFIX \"\${CMAKE_INSTALL_PREFIX}\" ABSOLUTE)
    set(SF_ENGINE_FILE \"\${SF_PREFIX}/${CMAKE_INSTALL_BINDIR}/${first}\")
    configure_file(\"${CMAKE_SOURCE_DIR}/packaging/steadfast.service.in\" \"${CMAKE_BINARY_DIR}/steadfast.service\" @ONLY)")
  install(FILES ${CMAKE_BINARY_DIR}/steadfast.service DESTINATION lib/systemd/system)
endif()
